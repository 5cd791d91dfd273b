"""The fleet as the operator wants it: instances, their life-cycle, probes and leases.

What routers observe (load, residency, scores) is not here but in `controlplane.telemetry`.
"""
