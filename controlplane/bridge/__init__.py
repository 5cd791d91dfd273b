"""What a router worker talks to: the configuration document out, snapshots in, and who runs what."""
