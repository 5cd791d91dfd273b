"""What changes rows of the fleet app, one subject a file."""
