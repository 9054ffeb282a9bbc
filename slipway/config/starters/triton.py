"""A first config of Triton."""

from typing import Any

from slipway.config.starters.starter import Answers, Starter
from slipway.facts.images import runs_on, versions
from slipway.facts.instances import Accelerator
from slipway.facts.triton.releases import TRITON

# The family whose model repository Slipway makes itself.
_OWN_REPOSITORY = "t5"


def _serving(answers: Answers, accelerator: Accelerator | None) -> dict[str, Any]:
    serving: dict[str, Any] = {"version": _version(accelerator)}
    if answers.own.get("repository") is not None:
        return {**serving, "repository": answers.own["repository"]}
    return {**serving, "max_batch_size": 8, "max_input_tokens": 64, "max_new_tokens": 64}


def _version(accelerator: Accelerator | None) -> str:
    """Returns the newest release that supports the GPU, or the newest of all."""
    known = versions(TRITON)
    capability = accelerator.compute_capability if accelerator else None
    if capability is None:
        return known[-1]
    fitting = [version for version in known if runs_on(TRITON, version, capability)]
    return (fitting or known)[-1]


STARTER = Starter(
    _serving,
    compile_instance=lambda answers: answers.instance,
    options=("repository",),
    instead_of_weights="repository",
    suits=(_OWN_REPOSITORY,),
    required=lambda family: () if family in (None, _OWN_REPOSITORY) else ("repository",),
)
