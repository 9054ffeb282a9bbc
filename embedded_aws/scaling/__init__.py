"""Application Auto Scaling of the embedded AWS: moto stores targets, policies and schedules.

`expressions` reads schedules, and `service` carries them out on a clock that tests can move.
"""
