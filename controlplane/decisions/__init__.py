"""Decisions that somebody asks about: found, or asked of every router worker, and kept from then on.

What routers send by themselves is in :mod:`controlplane.telemetry`. Nothing is decided here.
"""
