"""Every page with every number on it, and the source of each."""
