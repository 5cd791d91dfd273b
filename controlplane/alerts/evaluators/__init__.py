"""One file a kind of alert: its limits, and a pure function from a window to findings."""
