"""When routers let requests wait instead of placing them, and for how long: one row of settings for the fleet.

The limit of one workload is the workload's own (:mod:`controlplane.policies`); quotas are those of tenants.
"""
