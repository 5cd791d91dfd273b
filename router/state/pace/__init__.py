"""The pace of an instance: what a prefill token and a decode step cost there, learnt from the requests that it served.

Every streamed answer gives two linear equations in the costs of :class:`router.core.hardware.HardwareProfile`
(:mod:`router.state.pace.cost_row`). A bounded, varied choice of the newest (:mod:`router.state.pace.cost_rows`) is
solved now and then, robustly and with the configured profile as the prior (:mod:`router.state.pace.cost_fit`).
Measured from the books at the first token and the end of a request, never per piece of an answer.
"""
