"""Rules about accelerators of LMI containers: their kind, their number, and how a model is split.

DJL Serving dies of most of these minutes into a deployment (facts: lmi).
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi, fits_key_value_heads
from slipway.planning.families.lmi.frameworks import splits_layers
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
    neuron = setup.version.framework == "djl-neuronx"
    for placement in lmi.placements:
        instance, accelerator = placement.instance, placement.instance.accelerator
        if not instance.accelerator_known or setup.devices(accelerator) is not None:
            continue
        has = f"{accelerator.count} x {accelerator.product}" if accelerator else "no accelerator"
        needs = "Inferentia 2 or Trainium" if neuron else "an NVIDIA GPU"
        one, other = _NEURON_EXAMPLES if neuron else _GPU_EXAMPLES
        yield problem(
            Code.LMI_ACCELERATOR,
            f"{instance.name} has {has}; {setup.version.framework} needs {needs}",
            f"Choose an instance type with {needs}, for example `{one}` or `{other}`.",
            placement.field,
        )


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
        yield problem(
            Code.LMI_EXPERTS,
            f"{experts} experts cannot be spread over {degree} accelerators",
            f"Use a degree of {experts} at most, or correct `experts` in `model`.",
            ("serving", "tensor_parallel_degree"),
        )


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
    setup = lmi.setup
    if setup.handler is None:
        return
    degree = setup.serving.pipeline_parallel_degree
    if degree > 1 and not setup.reads("pipeline_parallel_degree"):
        yield problem(
            Code.LMI_PIPELINE_PARALLELISM,
            f"{setup.image} has no pipeline parallelism: it would ignore the degree {degree}",
            "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
            ("serving", "pipeline_parallel_degree"),
        )
