"""Application Auto Scaling of the embedded AWS: moto stores targets, policies and schedules.

`service` carries out schedules on a clock that tests can move.
"""
