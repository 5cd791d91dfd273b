"""What changes rows of the alerts app, one subject a file."""
