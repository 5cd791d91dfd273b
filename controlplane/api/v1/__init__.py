"""Version 1 of the REST interface: one resource a file; views call services and selectors, and nothing else."""
