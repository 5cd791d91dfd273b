"""Coverage-guided fuzzing (`make fuzz`) of what reads bytes of clients and engines, and what it has found."""
