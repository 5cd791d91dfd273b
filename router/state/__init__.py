"""The live fleet: what is booked where, what engines reported, which prefixes are expected to be resident.

No I/O and no clock of its own: the proxy and the simulator drive the same code with their own time.
"""
