"""Names of the tasks of this app that others ring for."""

EVALUATE = "alerts.evaluate"
DELIVER = "alerts.deliver"
