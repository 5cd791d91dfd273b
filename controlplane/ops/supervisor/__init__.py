"""The supervisor of `pointsman up`: starts every process in order, restarts what dies, leaves nothing behind.

Knows neither Django nor rows: it runs what :mod:`controlplane.ops.supervisor.plan` lists.
"""
