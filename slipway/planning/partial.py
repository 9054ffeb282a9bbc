"""The rules of modules, and what they find in the valid part of a config.

The other values of an invalid config raise `UnknownValueError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from inspect import isfunction
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from slipway.config.sections.base import UnknownValueError
from slipway.errors import Problem
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.planning.deployment import Deployment
from slipway.planning.memory_estimate import Layout

DeploymentT = TypeVar("DeploymentT", bound=Deployment)


# Any: a family's rules take its own deployment, and advice is rules that yield warnings.
def rules_of(*modules: ModuleType) -> tuple[Callable[[Any], Iterator[Any]], ...]:
    """Returns the rules of modules: what one lists as `RULES`, or else its public functions."""
    rules: list[Callable[[Any], Iterator[Any]]] = []
    for module in modules:
        functions = [
            value
            for name, value in vars(module).items()
            if isfunction(value) and value.__module__ == module.__name__ and name[0] != "_"
        ]
        rules += getattr(module, "RULES", functions)
    return tuple(rules)


def found_by(
    rules: Iterable[Callable[[DeploymentT], Iterator[Problem]]], of: DeploymentT
) -> list[Problem]:
    """Returns what rules find, each up to the first value that it needs and that is not known."""
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
        raise UnknownValueError("serving")

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        raise UnknownValueError(f"layout on {instance.name}, {accelerator.product}")

    @property
    def cached_tokens(self) -> int | str:
        raise UnknownValueError("serving")
