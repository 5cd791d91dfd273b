"""Alerts: what is wrong, who looks after it, who is told.

``window`` is what routers reported, rolled up; ``evaluators`` are pure functions from a window to findings, listed in
``kinds``; ``settling`` damps them; ``lifecycle`` says what may happen to an alert. ``services`` write, ``selectors``
read. ``outbox`` rows are notifications on their way, and ``notifiers`` know one kind of channel each.
"""
