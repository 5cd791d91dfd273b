"""Names of the tasks of this app that others ring for."""

EVALUATE = "alerts.evaluate"
LOOK_EARLY = "alerts.look_early"
DELIVER = "alerts.deliver"
