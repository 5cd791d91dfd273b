"""How long tests wait for what must happen: no measure of speed, and free where it happens."""

PATIENCE_S = 240.0
"""What has not happened by then is taken to never happen, however busy the machine."""
PATIENCE_MS = PATIENCE_S * 1000
