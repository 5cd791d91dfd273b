"""The control plane: durable truth about instances, policies, people and alerts, and everything that serves it.

Imports `router`, never `dashboards`; only :mod:`controlplane.asgi` looks up.
"""
