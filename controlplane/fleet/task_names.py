"""Names of the tasks of this app that others ring for."""

PROBE_INSTANCE = "fleet.probe_instance"
