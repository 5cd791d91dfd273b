"""Service-level objectives: targets of workloads, how far they are met, and how fast the error budget burns.

Above telemetry (whose roll-ups are counted) and policies (whose workloads have the targets), below alerts.
"""
