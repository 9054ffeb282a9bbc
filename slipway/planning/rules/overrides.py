"""Rules about fallback types that serve a model of their own."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.endpoint import has_own_model
from slipway.errors import FieldPath, Problem
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment, problem
from slipway.planning.placements import variants_of

# Whether the variant has a model of its own, and its types.
_Pool = tuple[bool, tuple[str, ...]]


def overrides_are_of_fallback_types(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker knows a model for each further type of a pool (ModelNameOverride)."""
    pools = list(_pools(deployment))
    seen: set[str] = set()
    for index, override in enumerate(deployment.config.endpoint.model_overrides):
        field: FieldPath = ("endpoint", "model_overrides", index)
        if not has_own_model(override):
            message = "the section has no `model`, `serving` or `artifacts`: nothing would differ"
            remedy = "Write what differs from the file, or remove the section."
            yield problem(Code.MODEL_OVERRIDE, message, remedy, field)
        for position, name in enumerate(override.instances):
            wrong = _of_type(name, pools) if name not in seen else None
            if name in seen:
                wrong = f"{name} has a model already", "Remove it here."
            if wrong is not None:
                yield problem(Code.MODEL_OVERRIDE, *wrong, (*field, "instances", position))
            seen.add(name)


def _pools(deployment: Deployment) -> Iterator[_Pool]:
    endpoint = deployment.config.endpoint
    shadows = (endpoint.shadow,) if endpoint.shadow else ()
    for each in (*(variant for _, _, variant in variants_of(deployment.config)), *shadows):
        yield has_own_model(each), (each.instances if each else None) or endpoint.instances


def _of_type(name: str, pools: list[_Pool]) -> tuple[str, str] | None:
    """Returns what is wrong with an override of a type, and the remedy; else None."""
    named = [pool for pool in pools if name in pool[1]]
    if not named:
        return f"no pool has {name}", "Add it to `endpoint.instances`, or remove it here."
    if any(types[0] == name for _, types in named):
        return (
            f"{name} is the first type of its pool, and runs the model of the file",
            "Write the sections of the first type at the top of the file, and here those of the "
            "types after it.",
        )
    if any(has_own for has_own, _ in named):
        return (
            f"a variant with a model of its own has {name} in its pool, and runs that model there",
            "Give the variant `instances` without this type.",
        )
    return None


def copies_have_one_model(deployment: Deployment) -> Iterator[Problem]:
    """Slipway gives an inference component one specification for all types."""
    endpoint = deployment.config.endpoint
    if endpoint.mode == SCALE_TO_ZERO and endpoint.model_overrides:
        yield problem(
            Code.MODEL_OVERRIDE,
            "Slipway gives the copies of `mode: scale_to_zero` one model on all types of a pool",
            "Use another `mode`, or remove `model_overrides`.",
            ("endpoint", "model_overrides"),
        )
