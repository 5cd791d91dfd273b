"""Hotspots: prefix classes that draw more than their share of requests to the few instances that hold their prefix.

A class is what shares a prefix (:mod:`.prefix_class`). Its share of the arrivals is counted in a sliding window
(:mod:`.window`) of bounded memory (:mod:`.space_saving`). Stage 1 (:mod:`.stage_one`) says which classes to watch,
stage 2 (:mod:`.stage_two`) when requests of a watched class must go elsewhere. All of it is pure or owned by one
caller; time is a parameter.
"""
