"""What another package needs to bring a serving family, and no more.

The guide is docs/guides/family-package.md. A name is imported when it is first used: Slipway loads
a package's section while its own modules are still being imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from slipway.codes.code import Code
from slipway.errors import FieldPath, Kind, Problem

if TYPE_CHECKING:
    from slipway.config.sections.base import Section as Section
    from slipway.config.starters.starter import Answers as Answers
    from slipway.config.starters.starter import Starter as Starter
    from slipway.embedded_aws.hosting.families.program import ContainerProgram as ContainerProgram
    from slipway.facts.instances import Accelerator as Accelerator
    from slipway.facts.instances import InstanceFacts as InstanceFacts
    from slipway.planning.deployment import Deployment as Deployment
    from slipway.planning.families.family import Family as Family
    from slipway.planning.memory_estimate import Layout as Layout
    from slipway.planning.plan import ImagePlan as ImagePlan
    from slipway.planning.plan import PlanWarning as PlanWarning
    from slipway.publishing.packaging import Package as Package
    from slipway.publishing.packaging import Packaging as Packaging

_MODULES = {
    "Section": "slipway.config.sections.base",
    "Answers": "slipway.config.starters.starter",
    "Starter": "slipway.config.starters.starter",
    "ContainerProgram": "slipway.embedded_aws.hosting.families.program",
    "Accelerator": "slipway.facts.instances",
    "InstanceFacts": "slipway.facts.instances",
    "Deployment": "slipway.planning.deployment",
    "Family": "slipway.planning.families.family",
    "Layout": "slipway.planning.memory_estimate",
    "ImagePlan": "slipway.planning.plan",
    "PlanWarning": "slipway.planning.plan",
    "Package": "slipway.publishing.packaging",
    "Packaging": "slipway.publishing.packaging",
}
__all__ = [*_MODULES, "Problem", "refusal"]


def __getattr__(name: str) -> Any:
    """Imports one of the names of `__all__`."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def refusal(message: str, remedy: str, field: FieldPath) -> Problem:
    """Returns the problem that a rule of the family yields.

    Args:
        message: what is wrong, with the values and the limit.
        remedy: what to do, as an instruction or a command.
        field: path of the field in the file, for example `("serving", "workers")`.
    """
    return Problem(Code.FAMILY_RULE, Kind.COMPATIBILITY, message, remedy, field)
