"""Running Pointsman: health, metrics, static files, the supervisor and the commands."""
