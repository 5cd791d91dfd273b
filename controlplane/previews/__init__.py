"""What a policy would do, before it is published: on the fleet of this moment, and on recently recorded decisions.

The same `decide()` that routes is asked; nothing is scored here. Above telemetry and policies, below the REST views.
"""
