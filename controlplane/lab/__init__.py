"""The laboratory: simulations that people ask for, and the traces they run on.

A simulation runs in a process of its own (:mod:`controlplane.lab.child`), because it would hold up everything else for
minutes; what it may use is limited. Rows are the truth, in their states of :mod:`controlplane.lab.lifecycle`.
"""
