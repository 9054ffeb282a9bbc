"""Rules about accelerators of LMI containers: their kind, their number, and how a model is split.

DJL Serving dies of most of these minutes into a deployment (facts: lmi).
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
from slipway.planning.families.lmi.deployment import Lmi, fits_key_value_heads
from slipway.planning.families.lmi.partitioning import splits_layers
from slipway.planning.families.lmi.setup import LmiSetup, ordered
from slipway.planning.quantization import has_bf16

# The images are for Inferentia 2 and Trainium; Inferentia 1 has another compiler.
_NEURON_EXAMPLES = ("ml.inf2.xlarge", "ml.trn1.2xlarge")
_GPU_EXAMPLES = ("ml.g5.xlarge", "ml.g6.xlarge")
_LARGEST_SUGGESTED_DEGREE = 32


def image_has_its_accelerator(lmi: Lmi) -> Iterator[Problem]:
    """Refuses an accelerator that the image is not for.

    One framework is for Inferentia 2 and Trainium, the others for NVIDIA's GPUs.
    """
    setup = lmi.setup
    neuron = setup.is_for_neuron
    for placement in lmi.placements:
        instance, accelerator = placement.instance, placement.instance.accelerator
        if not instance.accelerator_known or setup.devices(accelerator) is not None:
            continue
        has = f"{accelerator.count} x {accelerator.product}" if accelerator else "no accelerator"
        needs = "Inferentia 2 or Trainium" if neuron else "an NVIDIA GPU"
        one, other = _NEURON_EXAMPLES if neuron else _GPU_EXAMPLES
        message = f"{instance.name} has {has}; {setup.version.framework} needs {needs}"
        remedy = f"Choose an instance type with {needs}, for example `{one}` or `{other}`."
        yield problem(Code.LMI_ACCELERATOR, message, remedy, placement.field)


def copy_fits_instance(lmi: Lmi) -> Iterator[Problem]:
    """The server dies of it: "GPU devices are not enough to run N partitions"."""
    setup = lmi.setup
    if not setup.runs_python:
        return
    serving, needed = setup.serving, setup.devices_per_copy
    product = (
        f"tensor parallel degree {serving.tensor_parallel_degree} x pipeline parallel degree "
        f"{serving.pipeline_parallel_degree}"
    )
    for placement in lmi.placements:
        count = setup.devices(placement.instance.accelerator)
        if count is not None and needed > count:
            yield problem(
                Code.LMI_COPY_SIZE,
                f"one copy takes {needed} {setup.device_name} ({product}); "
                f"{placement.instance.name} has {count}",
                "Lower the degrees, or choose an instance type with more accelerators.",
                placement.field,
            )


def degree_divides_heads(lmi: Lmi) -> Iterator[Problem]:
    """Attention is split by its heads, where more than whole layers are spread."""
    setup, heads = lmi.setup, lmi.config.model.attention_heads
    if heads is None or not setup.runs_python or not splits_layers(setup) or setup.pads_heads:
        return
    degree = setup.serving.tensor_parallel_degree
    if heads % degree:
        yield problem(
            Code.LMI_ATTENTION_HEADS,
            f"{heads} attention heads cannot be split over {degree} accelerators",
            f"Use a degree that divides them: {_fitting_degrees(lmi, heads)}.",
            ("serving", "tensor_parallel_degree"),
        )


def degree_fits_key_value_heads(lmi: Lmi) -> Iterator[Problem]:
    """The engine asserts it while it loads: the heads are split evenly, or copied evenly."""
    setup, model = lmi.setup, lmi.config.model
    heads, groups = model.attention_heads, model.key_value_heads
    if groups is None or not setup.runs_python or not splits_layers(setup) or setup.pads_heads:
        return
    degree = setup.serving.tensor_parallel_degree
    if fits_key_value_heads(degree, groups) or (heads is not None and heads % degree):
        return
    yield problem(
        Code.LMI_KEY_VALUE_HEADS,
        f"{groups} key/value heads can be neither split over {degree} accelerators nor copied to "
        "each of them equally",
        f"Use one of these degrees: {_fitting_degrees(lmi, heads or _LARGEST_SUGGESTED_DEGREE)}.",
        ("serving", "tensor_parallel_degree"),
    )


def degree_fits_experts(lmi: Lmi) -> Iterator[Problem]:
    """VLLM's networks refuse a degree above the number of experts (`tp_size > config.num_experts`).

    With expert parallelism too, since each accelerator has one expert at least.
    """
    setup, experts = lmi.setup, lmi.config.model.experts
    degree = setup.serving.tensor_parallel_degree
    if experts is not None and degree > experts and setup.version.framework == "djl-lmi":
        message = f"{experts} experts cannot be spread over {degree} accelerators"
        remedy = f"Use a degree of {experts} at most, or correct `experts` in `model`."
        yield problem(Code.LMI_EXPERTS, message, remedy, ("serving", "tensor_parallel_degree"))


def _fitting_degrees(lmi: Lmi, heads: int) -> str:
    groups, all_heads = lmi.config.model.key_value_heads, lmi.config.model.attention_heads
    return ", ".join(
        str(degree)
        for degree in range(1, min(heads, _LARGEST_SUGGESTED_DEGREE) + 1)
        if (all_heads is None or all_heads % degree == 0)
        and (groups is None or fits_key_value_heads(degree, groups))
    )


def gpu_has_bf16(lmi: Lmi) -> Iterator[Problem]:
    """vLLM, DeepSpeed and FasterTransformer refuse bf16 on GPUs before Ampere while they load."""
    if lmi.serving.dtype != "bf16":
        return
    for placement, product, capability in lmi.nvidia_gpus():
        accelerator = placement.instance.accelerator
        if accelerator is None or has_bf16(accelerator):
            continue
        other = "fp32" if lmi.config.model.family == "t5" else "fp16"
        yield problem(
            Code.LMI_BF16,
            f"{placement.instance.name} has {product} ({capability}); bf16 needs compute "
            "capability 8.0 (sm80) or higher",
            f"Set `dtype: {other}`, or choose a type with a newer GPU, for example "
            f"`{_GPU_EXAMPLES[0]}`.",
            placement.field,
        )


def pipeline_is_read(lmi: Lmi) -> Iterator[Problem]:
    """Most versions before 0.29 have no pipeline parallelism, and ignore the key."""
    setup, degree = lmi.setup, lmi.serving.pipeline_parallel_degree
    has_handler = setup.handler is not None
    if has_handler and degree > 1 and not setup.reads("pipeline_parallel_degree"):
        yield problem(
            Code.LMI_PIPELINE_PARALLELISM,
            f"{setup.image} has no pipeline parallelism: it would ignore the degree {degree}",
            "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
            ("serving", "pipeline_parallel_degree"),
        )


def family_is_supported(lmi: Lmi) -> Iterator[Problem]:
    """Refuses a model type that the handler has no code for, if it accepts no other."""
    setup, family = lmi.setup, lmi.model_type
    if family is None:
        return
    for row in setup.version.model_families:
        if row.handler != setup.handler or row.otherwise != "refused" or family in row.model_types:
            continue
        what = f"{setup.entry_point} of {setup.image}"
        if row.purpose == "smoothquant":
            if setup.serving.options.get("quantize") != "smoothquant":
                continue
            what += " with `quantize: smoothquant`"
        message = f"{what} takes no model of the family {lmi.config.model.family}"
        remedy = f"It takes {', '.join(row.model_types)}; choose another version or framework."
        yield problem(Code.LMI_FAMILY, message, remedy, ("model", "family"))


def answers_are_not_mixed(lmi: Lmi) -> Iterator[Problem]:
    """A batch in which everybody gets the first one's answer."""
    setup = lmi.setup
    if setup.serving.max_batch_size == 1:
        return
    for effect in _effects(setup, "mixed_batch_answers"):
        message = f"{setup.image} with batches of {setup.serving.max_batch_size}: {effect}"
        remedy = "Set `max_batch_size: 1`, or use another version."
        yield problem(Code.LMI_IMAGE_DEFECT, message, remedy, ("serving", "max_batch_size"))


def t5_is_not_in_fp16(lmi: Lmi) -> Iterator[Problem]:
    """Refuses T5 in fp16: it starts and answers, but writes worse text than in other precisions."""
    setup = lmi.setup
    if lmi.config.model.family != "t5" or setup.serving.dtype != "fp16":
        return
    # The engine's defect, so that Slipway's handler on it writes no better.
    ours = () if setup.ours is None else (setup.ours.replaces,)
    for effect in _effects(setup, "t5_fp16", *ours):
        message = f"T5 in fp16 on {setup.image}: {effect}"
        remedy = "Set `dtype: fp32` or `dtype: bf16`."
        yield problem(Code.LMI_IMAGE_DEFECT, message, remedy, ("serving", "dtype"))


def pytorch_backend_starts(lmi: Lmi) -> Iterator[Problem]:
    """Refuses `backend: pytorch` in images whose handler does not start with it."""
    setup = lmi.setup
    if setup.serving.options.get("backend") != "pytorch":
        return
    for effect in _effects(setup, "pytorch_backend"):
        message = f"`backend: pytorch` on {setup.image}: {effect}"
        remedy = "Remove it: an engine is built of the weights, or compile them ahead of time."
        yield problem(Code.LMI_IMAGE_DEFECT, message, remedy, ("serving", "options", "backend"))


def _effects(setup: LmiSetup, defect: str, *handlers: str) -> list[str]:
    """Returns what a defect of the image does, if its own handler or a further one has it."""
    having = (setup.handler, *handlers)
    return [d.effect for d in setup.version.defects if d.name == defect and d.handler in having]


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
            message = f"{engine.shown} does not load weights in {method}"
            remedy = f"{engine.nearest_image(has_it)} does. Or choose other weights."
            yield problem(Code.LMI_QUANTIZATION, message, remedy, ("model", "quantization"))
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
