"""Policies: conditions of a project that the plan of every model must meet.

A policy is a function that takes a `Plan` and returns or yields problems, each made by `problem`.
environments.yaml names policies, and `slipway.cdk.App` takes them.
"""

from slipway.errors import Problem
from slipway.policies.plan import Plan, Policy, problem
from slipway.policies.ready import ready

__all__ = ["Plan", "Policy", "Problem", "problem", "ready"]
