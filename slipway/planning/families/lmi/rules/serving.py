"""Rules about LMI containers: version, engine, handler, accelerators, weights, time-outs.

DJL Serving dies of some of these minutes into a deployment and passes over the others in silence
(facts: lmi).
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem, nearest
from slipway.facts.images import UnknownVersionError, versions
from slipway.facts.lmi.versions import lmi_version
from slipway.planning.families.lmi.frameworks import splits_layers
from slipway.planning.families.lmi.setup import LmiSetup, ordered
from slipway.planning.families.lmi.situation import Lmi, fits_key_value_heads
from slipway.planning.precision import has_bf16
from slipway.planning.situation import problem
from slipway.planning.timeouts import startup_timeout_seconds

# SageMaker's own limit of a realtime request.
_REALTIME_SECONDS = 60
# The images are for Inferentia 2 and Trainium; Inferentia 1 has another compiler.
_NEURON_EXAMPLES = ("ml.inf2.xlarge", "ml.trn1.2xlarge")
_GPU_EXAMPLES = ("ml.g5.xlarge", "ml.g6.xlarge")
_LARGEST_SUGGESTED_DEGREE = 32
_OPEN = "Set `network_isolation: false` in `endpoint`."
_OPEN_OR_VARIABLES = (
    "Set `network_isolation: false` in `endpoint`, or `configuration: environment` in `serving`: "
    "SageMaker brings the weights then."
)


def lmi_version_exists(lmi: Lmi) -> Iterator[Problem]:
    """AWS has an image of some versions of DJL Serving, and each framework its own."""
    serving = lmi.serving
    try:
        lmi_version(serving.framework, serving.version)
    except UnknownVersionError as error:
        wanted = ordered(serving.version)
        guess = next((name for name in error.known if ordered(name) >= wanted), error.known[-1])
        yield problem(
            Code.UNKNOWN_IMAGE_VERSION,
            f"there is no image of {serving.framework} {serving.version}",
            f"Did you mean `{guess}`? There are {', '.join(error.known)}.",
            ("serving", "version"),
        )


def engine_is_accepted(lmi: Lmi) -> Iterator[Problem]:
    """The server dies of an engine that it does not know; case counts."""
    setup = lmi.setup
    known = (*setup.version.engines, *setup.version.embedding_engines)
    if setup.engine not in known:
        same = next((name for name in known if name.lower() == setup.engine.lower()), None)
        guess = same or nearest(setup.engine, known)
        hint = f"Did you mean `{guess}`? " if guess else ""
        yield problem(
            Code.LMI_ENGINE,
            f"{setup.image} has no engine '{setup.engine}'",
            f"{hint}There are {', '.join(known)}; case matters.",
            ("serving", "engine"),
        )


def engine_has_handler(lmi: Lmi) -> Iterator[Problem]:
    """The server knows engines whose handlers only another framework's image can run."""
    setup = lmi.setup
    if setup.serving.entry_point is not None or setup.handler is not None:
        return
    if setup.engine in setup.version.engines:
        yield problem(
            Code.LMI_ENGINE,
            f"{setup.image} has no handler for the engine {setup.engine}",
            "Remove `engine`, or choose the framework's image that has it.",
            ("serving", "engine"),
        )


def entry_point_is_built_in(lmi: Lmi) -> Iterator[Problem]:
    """A module that the image does not have, or cannot run, is found out when it is loaded."""
    setup = lmi.setup
    if setup.serving.entry_point in (None, *setup.version.entry_points):
        return
    known = tuple(setup.version.entry_points)
    guess = nearest(setup.serving.entry_point, known)
    hint = f"Did you mean `{guess}`? " if guess else ""
    yield problem(
        Code.LMI_HANDLER,
        f"{setup.image} has no handler '{setup.serving.entry_point}'",
        f"{hint}There are {', '.join(known)}; a model.py of your own goes into `script`.",
        ("serving", "entry_point"),
    )


def there_is_one_handler(lmi: Lmi) -> Iterator[Problem]:
    """A model.py beside a built-in handler: the server takes the latter and says nothing.

    Later servers run the formatters of the model.py, which they decorate.
    """
    setup = lmi.setup
    given = [name for name in ("entry_point", "script") if getattr(setup.serving, name) is not None]
    if len(given) > 1 and not setup.version.reads_formatters:
        able = [
            version
            for version in versions(setup.version.framework)
            if lmi_version(setup.version.framework, version).reads_formatters
        ]
        other = f" From {able[0]} on a model.py may have formatters for it." if able else ""
        yield problem(
            Code.LMI_HANDLER,
            "there are two handlers: `entry_point` and `script`",
            f"Keep one of them.{other}",
            ("serving", "script"),
        )
    elif given and not setup.runs_python:
        yield problem(
            Code.LMI_HANDLER,
            f"the engine {setup.engine} runs no Python, so `{given[0]}` is not read",
            f"Remove it, or use the engine {setup.version.engines[-1]}.",
            ("serving", given[0]),
        )


def requirements_are_installed(lmi: Lmi) -> Iterator[Problem]:
    """The server installs a requirements.txt before it starts Python, and knows one folder."""
    setup = lmi.setup
    if setup.serving.requirements is None:
        return
    if setup.serving.script is not None:
        yield problem(
            Code.LMI_HANDLER,
            "`script` has a requirements.txt of its own, and `requirements` names another",
            f"Put the packages into {setup.serving.script}/requirements.txt, and remove "
            "`requirements`.",
            ("serving", "requirements"),
        )
    elif not setup.runs_python:
        yield problem(
            Code.LMI_HANDLER,
            f"the engine {setup.engine} runs no Python, so `requirements` is not read",
            f"Remove it, or use the engine {setup.version.engines[-1]}.",
            ("serving", "requirements"),
        )


def model_is_a_checkpoint(lmi: Lmi) -> Iterator[Problem]:
    """A release is a compiled model of a container of Slipway, and LMI serves a checkpoint."""
    if lmi.config.artifacts.release is not None:
        yield problem(
            Code.LMI_RELEASE,
            "LMI serves a checkpoint, and `release` is for a model that was compiled for a "
            "container of Slipway",
            "Use `artifacts.weights` with `source: path` and the directory of the checkpoint.",
            ("artifacts", "release"),
        )


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


def weights_can_be_named(lmi: Lmi) -> Iterator[Problem]:
    """The oldest server reads weights from the Hub or from its package alone."""
    setup = lmi.setup
    if setup.version.weights.s3 or not lmi.copies_released_weights:
        return
    framework = setup.version.framework
    able = [
        version for version in versions(framework) if lmi_version(framework, version).weights.s3
    ]
    yield problem(
        Code.LMI_WEIGHTS_FROM_S3,
        f"{setup.image} does not copy weights from S3",
        f"Use version {able[0]} or a later one.",
        ("serving", "version"),
    )


def _reads_variables(setup: LmiSetup) -> bool:
    """Whether the other form of the settings, which lets SageMaker bring the weights, will do."""
    has_files = setup.serving.script is not None or setup.serving.requirements is not None
    return not has_files and setup.version.makes_model_of_variables


def weights_need_network(lmi: Lmi) -> Iterator[Problem]:
    """SageMaker brings the package alone; the container itself copies the weights from S3."""
    setup = lmi.setup
    if not lmi.copies_released_weights:
        return
    if lmi.config.endpoint.network_isolation:
        yield problem(
            Code.LMI_NETWORK_ISOLATION,
            "the container copies the weights from S3 itself, which network isolation forbids",
            _OPEN_OR_VARIABLES if _reads_variables(setup) else _OPEN,
            ("endpoint", "network_isolation"),
        )


def loading_ends_in_time(lmi: Lmi) -> Iterator[Problem]:
    """SageMaker gives up on a container whose /ping is late, whatever the server would wait."""
    setup = lmi.setup
    if not setup.runs_python:
        return
    loading = lmi.loading_timeout_seconds
    startup = startup_timeout_seconds(lmi)
    if loading > startup:
        yield problem(
            Code.LMI_TIMEOUT,
            f"the model may load for {loading} s, and SageMaker ends the start after {startup} s",
            f"Lower `model_loading_timeout_seconds` to {startup} or less, or raise "
            "`endpoint.container_startup_health_check_timeout_seconds`.",
            ("serving", "model_loading_timeout_seconds"),
        )


def predictions_end_in_time(lmi: Lmi) -> Iterator[Problem]:
    """SageMaker has given the request up by then, while the model goes on with it."""
    setup = lmi.setup
    if lmi.config.endpoint.mode != "realtime":
        return
    seconds = setup.serving.predict_timeout_seconds
    if seconds > _REALTIME_SECONDS:
        yield problem(
            Code.LMI_TIMEOUT,
            f"a prediction may take {seconds} s, and SageMaker ends realtime requests after "
            f"{_REALTIME_SECONDS} s",
            f"Lower `predict_timeout_seconds` to {_REALTIME_SECONDS} or less, or use "
            "`mode: async`.",
            ("serving", "predict_timeout_seconds"),
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
        yield problem(
            Code.LMI_FAMILY,
            f"{what} takes no model of the family {lmi.config.model.family}",
            f"It takes {', '.join(row.model_types)}; choose another version or framework.",
            ("model", "family"),
        )


def answers_are_not_mixed(lmi: Lmi) -> Iterator[Problem]:
    """A batch in which everybody gets the first one's answer."""
    setup = lmi.setup
    if setup.serving.max_batch_size == 1:
        return
    for defect in setup.version.defects:
        if defect.name == "mixed_batch_answers" and defect.handler == setup.handler:
            yield problem(
                Code.LMI_IMAGE_DEFECT,
                f"{setup.image} with batches of {setup.serving.max_batch_size}: {defect.effect}",
                "Set `max_batch_size: 1`, or use another version.",
                ("serving", "max_batch_size"),
            )


def t5_is_not_in_fp16(lmi: Lmi) -> Iterator[Problem]:
    """Refuses T5 in fp16: it starts and answers, but writes worse text than in other precisions."""
    setup = lmi.setup
    if lmi.config.model.family != "t5" or setup.serving.dtype != "fp16":
        return
    for defect in setup.version.defects:
        # The engine's, so that another handler on it writes no better.
        ours = setup.ours.replaces if setup.ours else None
        if defect.name == "t5_fp16" and defect.handler in (setup.handler, ours):
            yield problem(
                Code.LMI_IMAGE_DEFECT,
                f"T5 in fp16 on {setup.image}: {defect.effect}",
                "Set `dtype: fp32` or `dtype: bf16`.",
                ("serving", "dtype"),
            )


def pytorch_backend_starts(lmi: Lmi) -> Iterator[Problem]:
    """Refuses `backend: pytorch` in images whose handler does not start with it."""
    setup = lmi.setup
    if setup.serving.options.get("backend") != "pytorch":
        return
    for defect in setup.version.defects:
        if defect.name == "pytorch_backend" and defect.handler == setup.handler:
            yield problem(
                Code.LMI_IMAGE_DEFECT,
                f"`backend: pytorch` on {setup.image}: {defect.effect}",
                "Remove it: an engine is built of the weights, or compile them ahead of time.",
                ("serving", "options", "backend"),
            )


RULES = (
    lmi_version_exists,
    engine_is_accepted,
    engine_has_handler,
    entry_point_is_built_in,
    there_is_one_handler,
    requirements_are_installed,
    model_is_a_checkpoint,
    image_has_its_accelerator,
    copy_fits_instance,
    degree_divides_heads,
    degree_fits_key_value_heads,
    gpu_has_bf16,
    pipeline_is_read,
    weights_can_be_named,
    weights_need_network,
    loading_ends_in_time,
    predictions_end_in_time,
    family_is_supported,
    answers_are_not_mixed,
    t5_is_not_in_fp16,
    pytorch_backend_starts,
)
