"""The laboratory: an engine model, traces, and a cluster simulator that routes with the router's own decision.

The engine model is pure and has no clock; the discrete-event simulator and the simulated engine server both drive it.
"""
