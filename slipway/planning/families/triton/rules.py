"""Rules about Triton: its release, its GPU, its model repository."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.serving.triton import TritonServing
from slipway.errors import Problem, did_you_mean
from slipway.facts.images import versions
from slipway.facts.triton.releases import TRITON, triton_bases, triton_releases
from slipway.planning.deployment import problem
from slipway.planning.families.triton.deployment import Triton

_OWN_REPOSITORY_FAMILY = "t5"

# Settings of Slipway's model, and what decides them in a repository of the user's own.
_SETTINGS_OF_THE_MODEL = {
    "max_batch_size": "`max_batch_size` of config.pbtxt",
    "max_batch_delay_microseconds": (
        "`dynamic_batching.max_queue_delay_microseconds` of config.pbtxt"
    ),
    "max_queue_length": "`dynamic_batching.default_queue_policy.max_queue_size` of config.pbtxt",
    "max_input_tokens": "your own model",
    "max_new_tokens": "your own model",
}


def release_exists(triton: Triton) -> Iterator[Problem]:
    """AWS makes an image of few of NVIDIA's monthly releases."""
    serving = triton.serving
    if serving.version in versions(TRITON):
        return
    hint = did_you_mean(serving.version, versions(TRITON))
    message = f"there is no Triton image of release {serving.version}"
    remedy = f"{hint}There are {', '.join(versions(TRITON))}."
    yield problem(Code.UNKNOWN_IMAGE_VERSION, message, remedy, ("serving", "version"))


def needs_nvidia_gpu(triton: Triton) -> Iterator[Problem]:
    """Triton runs anywhere, its TensorRT back end on NVIDIA's GPUs alone.

    The back ends of a user's own repository are in its config.pbtxt files, whose check asks for the
    GPU.
    """
    serving = triton.serving
    what = "Triton" if triton.is_own else f"the backend `{serving.backend}` of Triton"
    for placement in triton.placements:
        accelerator = placement.instance.accelerator
        if not placement.instance.accelerator_known:
            continue
        if accelerator is None and (triton.is_own or serving.backend != "tensorrt"):
            continue
        if accelerator is None or not accelerator.is_nvidia_gpu:
            has = f"{accelerator.count} x {accelerator.product}" if accelerator else "no GPU"
            yield problem(
                Code.NVIDIA_GPU,
                f"{placement.instance.name} has {has}; {what} does not run on it",
                "Choose an instance type with an NVIDIA GPU, for example `ml.g4dn.xlarge` or "
                "`ml.g5.xlarge`.",
                placement.field,
            )


def has_a_repository(triton: Triton) -> Iterator[Problem]:
    """Slipway makes a model repository for T5; any other is the user's own."""
    family = triton.config.model.family
    if triton.serving.repository is None and family != _OWN_REPOSITORY_FAMILY:
        message = f"Slipway makes no Triton model repository for the family `{family}`"
        remedy = "Add `repository` with the directory of your own."
        yield problem(Code.TRITON_REPOSITORY, message, remedy, ("serving", "container"))


def repository_is_the_artifact(triton: Triton) -> Iterator[Problem]:
    """A repository of the user's own is published as it is; nothing else would be served."""
    for name in ("release", "weights", "compile"):
        if triton.serving.repository and getattr(triton.config.artifacts, name) is not None:
            yield problem(
                Code.TRITON_REPOSITORY,
                f"`{name}` has no effect: the release is your own model repository, "
                f"{triton.serving.repository}",
                "Remove it, or remove `serving.repository`.",
                ("artifacts", name),
            )


def repository_has_its_own_settings(triton: Triton) -> Iterator[Problem]:
    """AWS's image reads none of the settings of Slipway's model."""
    serving = triton.serving
    given = {name for name in serving.model_fields_set if getattr(serving, name) is not None}
    for name, instead in _SETTINGS_OF_THE_MODEL.items():
        if triton.is_own and name in given:
            yield problem(
                Code.TRITON_REPOSITORY,
                f"`{name}` has no effect on your own repository, {serving.repository}: "
                f"{instead} decides it",
                "Remove it.",
                ("serving", name),
            )


def own_model_has_lengths(triton: Triton) -> Iterator[Problem]:
    """Slipway's model bounds both lengths, and engines are built for them."""
    for name in ("max_input_tokens", "max_new_tokens"):
        if not triton.is_own and getattr(triton.serving, name) is None:
            description = TritonServing.model_fields[name].description or ""
            message = f"`{name}` is missing"
            remedy = f"Add it, for example `{name}: 64`. {description}"
            yield problem(Code.MISSING_FIELD, message, remedy, ("serving",))


def release_has_an_own_image(triton: Triton) -> Iterator[Problem]:
    """Slipway's image needs the bindings of the release's TensorRT, which few releases have."""
    version = triton.serving.version
    release = triton_releases().get(version)
    if triton.is_own or release is None or release.is_base:
        return
    yield problem(
        Code.UNKNOWN_IMAGE_VERSION,
        f"Slipway builds no image on Triton {version}: {release.no_base}",
        f"There are {', '.join(triton_bases())}. A `repository` of your own runs on any release.",
        ("serving", "version"),
    )


def own_model_has_graphs(triton: Triton) -> Iterator[Problem]:
    """Slipway's model runs two graphs: with TensorRT or with ONNX Runtime."""
    if not triton.is_own and triton.serving.backend == "python":
        yield problem(
            Code.TRITON_REPOSITORY,
            "Slipway's model of texts runs graphs, and `backend: python` has none",
            "Choose `tensorrt` or `onnxruntime`, or add `repository` with the directory of your "
            "own models.",
            ("serving", "backend"),
        )
