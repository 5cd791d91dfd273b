"""What changes rows of the accounts app, one subject a file."""
