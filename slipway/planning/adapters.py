"""LoRA adapters: components that the copies of a base load, beside the base's own weights.

An adapter has no copies, no model and no instances. Sources, read 2026-11-29:

- https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-adapt.html
- The archive is one .tar.gz: `ArtifactUrl` of
  https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_InferenceComponentContainerSpecification.html
- The variables of LMI: https://github.com/deepjavalibrary/djl-serving, serving/docs/adapters.md
"""

from collections.abc import Collection, Iterator, Sequence

from slipway.codes.code import Code
from slipway.config.adapters import ADAPTER_OF
from slipway.errors import Problem, did_you_mean
from slipway.planning.artifacts import has_source
from slipway.planning.deployment import AdapterSlots, Deployment, problem
from slipway.planning.lock import Lock
from slipway.planning.plan import PlanWarning
from slipway.planning.resolve import known_problems

ARCHIVE = "adapter.tar.gz"
"""The only file of a published adapter."""
_FIELD = (ADAPTER_OF,)


def unknown_base(base: str, adapter: str, names: Collection[str]) -> Problem | None:
    """Returns the problem of a base that is the adapter itself, or no model of the project."""
    if base in names and base != adapter:
        return None
    hint = did_you_mean(base, [name for name in names if name != adapter])
    message = f"there is no other model `{base}`, which could be the base of {adapter}"
    return _problem(message, f"{hint}Name a model of this project.")


def adapter_as_base(base: str) -> Problem:
    return _problem(f"`{base}` is an adapter itself, and loads none", f"Name the base of `{base}`.")


def invalid_base(base: str) -> Problem:
    message = f"the config of the base, `{base}`, has problems"
    return _problem(message, f"Run `slipway validate {base}`, and correct them.")


def _problem(message: str, remedy: str) -> Problem:
    return problem(Code.ADAPTER_BASE, message, remedy, _FIELD)


def compare_with_base(adapter: Deployment, base: Deployment, lock: Lock) -> Iterator[Problem]:
    """Yields the reasons for which the copies of a base in the same environment cannot load it."""
    name = base.config.name
    if known_problems(base):
        yield invalid_base(name)
        return
    if base.config.artifacts.isolated:
        message = f"the role of `{name}` loads its adapters, and reads the files of `{name}` alone"
        yield _problem(message, f"Remove `isolated` from `{name}`, or name another model.")
    if not has_source(base):
        wanted, where = base.environment.artifacts, base.environment.name
        message = f"`{name}` has no {wanted} for {where}, so nothing loads the adapter"
        yield _problem(message, f"Give `{name}` one, or name another model.")
    slots = base.adapter_slots
    if slots is None:
        yield _problem(f"the engine of `{name}` loads no adapters", base.way_to_adapters)
        return
    locked = lock.artifact(adapter)
    if locked is not None and locked.lora_rank is not None:
        yield from rank_problems(locked.lora_rank, slots, name)


def rank_problems(rank: int, slots: AdapterSlots, base: str) -> Iterator[Problem]:
    """Yields the problem of an adapter whose rank is higher than its base allows."""
    if rank > slots.max_rank:
        yield problem(
            Code.ADAPTER_RANK,
            f"the adapter has rank {rank}, and `{base}` loads ranks up to {slots.max_rank}",
            f"Set the option `max_lora_rank: {slots.rank_for(rank)}` for `{base}`, and deploy it. "
            "A higher rank takes more of each GPU's memory.",
            _FIELD,
        )


def more_adapters_than_slots(base: Deployment, names: Sequence[str]) -> Iterator[PlanWarning]:
    """Warns of a base with more adapters than one batch has room for."""
    slots = base.adapter_slots
    if slots is not None and len(names) > slots.in_batch:
        yield PlanWarning(
            "more-adapters-than-slots",
            f"{base.config.name} has {len(names)} adapters, and a batch has requests of "
            f"{slots.in_batch} of them (`max_loras`): requests of the others wait, and the engine "
            "exchanges adapters. A higher `max_loras` takes memory of each GPU.",
        )
