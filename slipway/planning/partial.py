"""Rules over the valid part of an invalid config, whose other values raise `UnknownValueError`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from slipway.config.sections.base import UnknownValueError
from slipway.errors import Problem
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.planning.deployment import Deployment
from slipway.planning.memory_estimate import Layout

DeploymentT = TypeVar("DeploymentT", bound=Deployment)


def found_by(
    rules: Iterable[Callable[[DeploymentT], Iterator[Problem]]], of: DeploymentT
) -> list[Problem]:
    """Returns what rules find, each up to the first value that it needs and that is not known.

    Args:
        rules: functions that take a deployment and yield problems.
        of: the deployment of a valid config, or of the valid part of a config.
    """
    found: list[Problem] = []
    for rule in rules:
        try:
            for problem in rule(of):
                found.append(problem)  # keeps what comes before an unknown value
        except UnknownValueError:
            continue
    return found


class UnknownFamily(Deployment):
    """A deployment whose container is not known: shared rules may ask for the config alone."""

    _KNOWN: ClassVar = (
        "config",
        "deploys_release",
        "environment",
        "instance",
        "instances",
        "instances_of",
        "placements",
        "region",
    )

    def __getattribute__(self, name: str) -> Any:
        """Returns what does not follow from the container; raises `UnknownValueError` else."""
        if name.startswith("__") or name in UnknownFamily._KNOWN:
            return super().__getattribute__(name)
        raise UnknownValueError(name)

    def container_environment(self) -> dict[str, str]:
        """Raises `UnknownValueError`, as `__getattribute__` says."""
        raise UnknownValueError("serving")

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        """Raises `UnknownValueError`, as `__getattribute__` says."""
        raise UnknownValueError(f"layout on {instance.name}, {accelerator.product}")

    @property
    def cached_tokens(self) -> int | str:
        """Raises `UnknownValueError`, as `__getattribute__` says."""
        raise UnknownValueError("serving")
