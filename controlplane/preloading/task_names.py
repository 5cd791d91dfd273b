"""Names of the tasks of this app that others ring for."""

SEND = "preloading.send"
