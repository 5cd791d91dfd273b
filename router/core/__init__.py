"""The decision: pure values and functions that choose an instance.

No I/O, clock, thread, logging or randomness of its own lives here: time and randomness arrive as parameters, and
everything decided is returned as data. The proxy, the simulator, the previews and the "why this instance?" page all
call :func:`router.core.decide.decide`; there is no second scoring code.
"""
