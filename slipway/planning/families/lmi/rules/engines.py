"""Rules about the engine of an LMI image: the networks it has code for, and how weights are stored.

An engine looks a network up by its class, and a method of quantisation by its name, and ends if it
has none while the model loads (facts: lmi_engines.json).
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.facts.images import runs_on
from slipway.facts.lmi.engines import (
    family_architectures,
    least_capability,
    loads,
    quantization_method,
    runs_remote_code,
    serves,
)
from slipway.facts.lmi.frameworks import framework_images
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.setup import ordered

# Where the server may choose, it gives these classes to an engine with a rolling batch
# (LmiConfigRecommender.java), and never to this framework.
_ENDS_OF_WRITERS = ("CausalLM", "LMHeadModel", "ForConditionalGeneration")
_WITHOUT_ROLLING_BATCH = "accelerate"
# vLLM's option that may name another class than config.json does.
_OVERRIDES = "hf_overrides"


class _Engine(NamedTuple):
    """The engine that loads a model: its name, the version of DJL Serving, and for messages."""

    name: str
    version: str
    shown: str

    def nearest_image(self, has: Callable[[str], bool], gpus: Sequence[str] = ()) -> str | None:
        """Returns the first later image, or else the last earlier one, that has it on the GPUs."""
        found = [
            (version, name)
            for version, (name, *_) in framework_images(self.name).items()
            if has(version) and all(runs_on(name, version, gpu) is not False for gpu in gpus)
        ]
        later = [each for each in found if ordered(each[0]) > ordered(self.version)]
        return next((f"{name} {version}" for version, name in later or found[::-1]), None)


def _architectures(lmi: Lmi) -> tuple[str, ...]:
    """Returns the classes that the network may have; none where nothing tells them."""
    model = lmi.config.model
    return (model.architecture,) if model.architecture else family_architectures(model.family)


def _engine(lmi: Lmi) -> _Engine | None:
    """Returns the engine that loads the model; None where it may be several, or a user's code."""
    names, setup = _architectures(lmi), lmi.setup
    titles = {each.name: each.title for each in lmi.frameworks}
    if names and len(titles) > 1 and all(name.endswith(_ENDS_OF_WRITERS) for name in names):
        titles.pop(_WITHOUT_ROLLING_BATCH, None)
    if len(titles) != 1:
        return None
    [(name, title)] = titles.items()
    known = lmi.aws_image.components.get(name) if lmi.aws_image else None
    shown = " ".join(part for part in (title, known, "of", setup.image) if part)
    return _Engine(name, setup.version.version, shown)


def engine_has_network(lmi: Lmi) -> Iterator[Problem]:
    """Refuses a network that the image's engine has no code for."""
    engine, names, serving = _engine(lmi), _architectures(lmi), lmi.serving
    if engine is None or not names or _OVERRIDES in serving.options:
        return
    if serving.trust_remote_code and runs_remote_code(engine.name, engine.version):
        return
    if any(serves(engine.name, engine.version, name) is not False for name in names):
        return

    def has_it(version: str) -> bool:
        return any(serves(engine.name, version, name) for name in names)

    remedy = "No image of Slipway's facts has it with this engine: choose another framework."
    if image := engine.nearest_image(has_it, [gpu for _, _, gpu in lmi.nvidia_gpus()]):
        remedy = f"{image} has it."
    elif image := engine.nearest_image(has_it):
        remedy = f"{image} has it, on a newer GPU."
    yield problem(
        Code.LMI_FAMILY,
        f"{engine.shown} has no code for the network {' or '.join(names)}",
        remedy,
        ("model", "architecture" if lmi.config.model.architecture else "family"),
    )


def gpu_has_quantization(lmi: Lmi) -> Iterator[Problem]:
    """Refuses weights in a method that the engine does not load, or not on this GPU.

    The options may name a method, and the checkpoint may be stored in one.
    """
    engine, given, stored = _engine(lmi), lmi.quantization, lmi.config.model.quantization
    if engine is None:
        return
    methods = dict.fromkeys(quantization_method(each) for each in (given, stored) if each)
    for method in methods:
        has_it = functools.partial(loads, engine.name, method=method)
        first = next(filter(has_it, framework_images(engine.name)), engine.version)
        # A later engine without it may have a plugin. What options may say is another rule's.
        if given is None and ordered(first) > ordered(engine.version):
            yield problem(
                Code.LMI_QUANTIZATION,
                f"{engine.shown} does not load weights in {method}",
                f"{engine.nearest_image(has_it)} does. Or choose other weights.",
                ("model", "quantization"),
            )
        for placement, product, gpu in lmi.nvidia_gpus():
            least = least_capability(engine.name, engine.version, method)
            if least is None or has_it(engine.version, gpu=gpu):
                continue
            image = engine.nearest_image(functools.partial(has_it, gpu=gpu), [gpu])
            yield problem(
                Code.LMI_QUANTIZATION,
                f"{engine.shown} loads weights in {method} on {least} or newer; "
                f"{placement.instance.name} has {product} ({gpu})",
                f"{image or 'No image'} loads them there. Or choose an instance type with a newer "
                "GPU, or other weights.",
                placement.field,
            )
