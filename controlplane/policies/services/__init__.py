"""What changes rows of the policies app, one subject a file."""
