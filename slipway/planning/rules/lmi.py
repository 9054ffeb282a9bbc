"""Rules about LMI containers: version, engine, handler, accelerators, weights, time-outs.

DJL Serving dies of some of these minutes into a deployment and passes over the others in silence
(facts: lmi).
"""

from __future__ import annotations

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.serving import LmiServing
from slipway.errors import Problem, nearest
from slipway.facts.images import UnknownVersionError, versions
from slipway.facts.instances import Accelerator
from slipway.facts.lmi import lmi_version
from slipway.planning.lmi import LmiSetup, ordered
from slipway.planning.lmi_frameworks import splits_layers
from slipway.planning.lmi_variables import is_model_of_variables
from slipway.planning.lock import has_code
from slipway.planning.rules.situation import Situation, problem
from slipway.planning.timeouts import loading_timeout_seconds, startup_timeout_seconds

# SageMaker's own limit of a realtime request.
_REALTIME_SECONDS = 60
# The images are for Inferentia 2 and Trainium; Inferentia 1 has another compiler.
_OLD_NEURON_GENERATION = "NeuronCore-v1"
_NEURON_EXAMPLES = ("ml.inf2.xlarge", "ml.trn1.2xlarge")
_GPU_EXAMPLES = ("ml.g5.xlarge", "ml.g6.xlarge")
_LARGEST_SUGGESTED_DEGREE = 32
_OPEN = "Set `network_isolation: false` in `endpoint`."
_OPEN_OR_VARIABLES = (
    "Set `network_isolation: false` in `endpoint`, or `configuration: environment` in `serving`: "
    "SageMaker brings the weights then."
)
# The config's names of families, where Hugging Face's `model_type` is another.
_MODEL_TYPES = {"xlm_roberta": "xlm-roberta"}


def model_type(situation: Situation) -> str | None:
    """Returns the family as Hugging Face's `model_type` says it; None where it is not said."""
    family = situation.config.model.family
    return None if family == "other" else _MODEL_TYPES.get(family, family)


def devices(setup: LmiSetup, accelerator: Accelerator | None) -> int | None:
    """Returns how many accelerators or NeuronCores the server can use; None where it knows none."""
    if accelerator is None:
        return None
    if setup.version.framework != "djl-neuronx":
        return accelerator.count if accelerator.is_nvidia_gpu else None
    old = accelerator.neuron_generation == _OLD_NEURON_GENERATION
    return None if old else accelerator.neuron_cores


def device_name(setup: LmiSetup) -> str:
    """Returns what the image counts, in the plural."""
    return "NeuronCores" if setup.version.framework == "djl-neuronx" else "GPUs"


def copies_weights(situation: Situation) -> bool:
    """Whether the container copies weights from S3; a sample is packaged whole."""
    artifacts = situation.config.artifacts
    released = artifacts.weights is not None or artifacts.release is not None
    return released and has_code(situation.config, situation.environment)


def lmi_version_exists(situation: Situation) -> Iterator[Problem]:
    """AWS has an image of some versions of DJL Serving, and each framework its own."""
    serving = situation.config.serving
    if not isinstance(serving, LmiServing):
        return
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


def engine_is_accepted(situation: Situation) -> Iterator[Problem]:
    """The server dies of an engine that it does not know; case counts."""
    setup = situation.lmi
    if setup is None:
        return
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


def engine_has_handler(situation: Situation) -> Iterator[Problem]:
    """The server knows engines whose handlers only another framework's image can run."""
    setup = situation.lmi
    if setup is None or setup.serving.entry_point is not None or setup.handler is not None:
        return
    if setup.engine in setup.version.engines:
        yield problem(
            Code.LMI_ENGINE,
            f"{setup.image} has no handler for the engine {setup.engine}",
            "Remove `engine`, or choose the framework's image that has it.",
            ("serving", "engine"),
        )


def entry_point_is_built_in(situation: Situation) -> Iterator[Problem]:
    """A module that the image does not have, or cannot run, is found out when it is loaded."""
    setup = situation.lmi
    if setup is None or setup.serving.entry_point in (None, *setup.version.entry_points):
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


def there_is_one_handler(situation: Situation) -> Iterator[Problem]:
    """A model.py and a built-in handler: the server takes the latter and says nothing."""
    setup = situation.lmi
    if setup is None:
        return
    given = [name for name in ("entry_point", "script") if getattr(setup.serving, name) is not None]
    if len(given) > 1:
        yield problem(
            Code.LMI_HANDLER,
            "there are two handlers: `entry_point` and `script`",
            "Keep one of them.",
            ("serving", "script"),
        )
    elif given and not setup.runs_python:
        yield problem(
            Code.LMI_HANDLER,
            f"the engine {setup.engine} runs no Python, so `{given[0]}` is not read",
            f"Remove it, or use the engine {setup.version.engines[-1]}.",
            ("serving", given[0]),
        )


def image_has_its_accelerator(situation: Situation) -> Iterator[Problem]:
    """Refuses an accelerator that the image is not for.

    One framework is for Inferentia 2 and Trainium, the others for NVIDIA's GPUs.
    """
    setup = situation.lmi
    if setup is None:
        return
    neuron = setup.version.framework == "djl-neuronx"
    for placement in situation.placements:
        instance, accelerator = placement.instance, placement.instance.accelerator
        if not instance.accelerator_known or devices(setup, accelerator) is not None:
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


def copy_fits_instance(situation: Situation) -> Iterator[Problem]:
    """The server dies of it: "GPU devices are not enough to run N partitions"."""
    setup = situation.lmi
    if setup is None or not setup.runs_python:
        return
    serving, needed = setup.serving, setup.devices_per_copy
    product = (
        f"tensor parallel degree {serving.tensor_parallel_degree} x pipeline parallel degree "
        f"{serving.pipeline_parallel_degree}"
    )
    for placement in situation.placements:
        count = devices(setup, placement.instance.accelerator)
        if count is not None and needed > count:
            yield problem(
                Code.LMI_COPY_SIZE,
                f"one copy takes {needed} {device_name(setup)} ({product}); "
                f"{placement.instance.name} has {count}",
                "Lower the degrees, or choose an instance type with more accelerators.",
                placement.field,
            )


def degree_divides_heads(situation: Situation) -> Iterator[Problem]:
    """Attention is split by its heads, where more than whole layers are spread."""
    setup, heads = situation.lmi, situation.config.model.attention_heads
    if setup is None or heads is None or not setup.runs_python or not splits_layers(setup):
        return
    degree = setup.serving.tensor_parallel_degree
    if heads % degree:
        fitting = [
            str(number)
            for number in range(1, min(heads, _LARGEST_SUGGESTED_DEGREE) + 1)
            if heads % number == 0
        ]
        yield problem(
            Code.LMI_ATTENTION_HEADS,
            f"{heads} attention heads cannot be split over {degree} accelerators",
            f"Use a degree that divides them: {', '.join(fitting)}.",
            ("serving", "tensor_parallel_degree"),
        )


def pipeline_is_read(situation: Situation) -> Iterator[Problem]:
    """Most versions before 0.29 have no pipeline parallelism, and ignore the key."""
    setup = situation.lmi
    if setup is None or setup.handler is None:
        return
    degree = setup.serving.pipeline_parallel_degree
    if degree > 1 and not setup.reads("pipeline_parallel_degree"):
        yield problem(
            Code.LMI_PIPELINE_PARALLELISM,
            f"{setup.image} has no pipeline parallelism: it would ignore the degree {degree}",
            "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
            ("serving", "pipeline_parallel_degree"),
        )


def weights_can_be_named(situation: Situation) -> Iterator[Problem]:
    """The oldest server reads weights from the Hub or from its package alone."""
    setup = situation.lmi
    if setup is None or setup.version.weights.s3 or not copies_weights(situation):
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
    version = ordered(setup.version.version)
    return setup.serving.script is None and is_model_of_variables(setup.version.framework, version)


def weights_need_network(situation: Situation) -> Iterator[Problem]:
    """SageMaker brings the package alone; the container itself copies the weights from S3."""
    setup = situation.lmi
    if setup is None or not copies_weights(situation):
        return
    if situation.config.endpoint.network_isolation:
        yield problem(
            Code.LMI_NETWORK_ISOLATION,
            "the container copies the weights from S3 itself, which network isolation forbids",
            _OPEN_OR_VARIABLES if _reads_variables(setup) else _OPEN,
            ("endpoint", "network_isolation"),
        )


def loading_ends_in_time(situation: Situation) -> Iterator[Problem]:
    """SageMaker gives up on a container whose /ping is late, whatever the server would wait."""
    setup = situation.lmi
    if setup is None or not setup.runs_python:
        return
    loading = loading_timeout_seconds(situation.config)
    startup = startup_timeout_seconds(situation.config)
    if loading > startup:
        yield problem(
            Code.LMI_TIMEOUT,
            f"the model may load for {loading} s, and SageMaker ends the start after {startup} s",
            f"Lower `model_loading_timeout_seconds` to {startup} or less, or raise "
            "`endpoint.container_startup_health_check_timeout_seconds`.",
            ("serving", "model_loading_timeout_seconds"),
        )


def predictions_end_in_time(situation: Situation) -> Iterator[Problem]:
    """SageMaker has given the request up by then, while the model goes on with it."""
    setup = situation.lmi
    if setup is None or situation.config.endpoint.mode != "realtime":
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


def family_is_supported(situation: Situation) -> Iterator[Problem]:
    """Refuses a model type that the handler has no code for, if it accepts no other."""
    setup, family = situation.lmi, model_type(situation)
    if setup is None or family is None:
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
            f"{what} takes no model of the family {situation.config.model.family}",
            f"It takes {', '.join(row.model_types)}; choose another version or framework.",
            ("model", "family"),
        )


def answers_are_not_mixed(situation: Situation) -> Iterator[Problem]:
    """A batch in which everybody gets the first one's answer."""
    setup = situation.lmi
    if setup is None or setup.serving.max_batch_size == 1:
        return
    for defect in setup.version.defects:
        if defect.name == "mixed_batch_answers" and defect.handler == setup.handler:
            yield problem(
                Code.LMI_IMAGE_DEFECT,
                f"{setup.image} with batches of {setup.serving.max_batch_size}: {defect.effect}",
                "Set `max_batch_size: 1`, or use another version.",
                ("serving", "max_batch_size"),
            )


def t5_is_not_in_fp16(situation: Situation) -> Iterator[Problem]:
    """Refuses T5 in fp16: it starts and answers, but writes worse text than in other precisions."""
    setup = situation.lmi
    if setup is None or situation.config.model.family != "t5" or setup.serving.dtype != "fp16":
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


def pytorch_backend_starts(situation: Situation) -> Iterator[Problem]:
    """Refuses `backend: pytorch` in images whose handler does not start with it."""
    setup = situation.lmi
    if setup is None or setup.serving.options.get("backend") != "pytorch":
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
    image_has_its_accelerator,
    copy_fits_instance,
    degree_divides_heads,
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
