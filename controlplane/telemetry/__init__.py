"""What router workers report, made ready to be looked at.

``ingest`` takes snapshots, ``hub`` owns the live state of this process (newest snapshot per worker, 60 s windows,
recent decision samples), ``frame`` is what browsers get, and ``feed`` hands the newest frame to each of them. Nothing
here decides anything: scores are read from the workers' samples, never computed again.
"""
