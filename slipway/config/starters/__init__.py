"""A first config of each serving family."""

from collections.abc import Mapping

from slipway.config.sections.serving import PACKAGES
from slipway.config.starters import custom, lmi, neuron, tensorrt, triton
from slipway.config.starters.starter import Starter
from slipway.facts.instances import instance_types

_SLIPWAYS: Mapping[str, Starter] = {
    "tensorrt": tensorrt.STARTER,
    "lmi": lmi.STARTER,
    "triton": triton.STARTER,
    "neuron": neuron.STARTER,
    "custom": custom.STARTER,
}
STARTERS = PACKAGES.beside(_SLIPWAYS, "starter", Starter, Starter(lambda *_: {}))
# For models of any other family.
DEFAULT = "lmi"


def suiting(family: str | None, task: str | None = None, instance: str | None = None) -> str:
    """Returns the container that is proposed for a family of models, by task and instance type."""
    found = next((name for name, each in STARTERS.items() if family in each.suits), DEFAULT)
    facts = instance_types().get(instance or "")
    accelerator = facts.accelerator if facts else None
    if found != "neuron" or (accelerator and accelerator.kind == "neuron"):
        return found
    # vLLM pools as the files of sentence-transformers say, which the Neuron container does not.
    is_pooled = task in ("embedding", "reranking") or (task == "classification" and accelerator)
    return DEFAULT if is_pooled else found
