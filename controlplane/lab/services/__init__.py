"""What changes rows of the laboratory."""
