"""LMI weights that are partitioned before they are served: the training job, and how they load.

The image's own command splits the weights, on as many GPUs as will serve them. It writes the parts,
and a serving.properties of its own beside them. That file is compared with what Slipway publishes
and not served: it names a directory of the job, and knows nothing of the other settings.

Pure: config and facts in, arguments and settings out. What cannot be partitioned is for the rules
to say (`slipway.planning.rules.lmi_partition`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import LmiServing
from slipway.facts.images import UnknownImageError, frameworks, image, versions
from slipway.facts.lmi_frameworks import PartitionFramework
from slipway.facts.lmi_partition import PartitionMethod, partition_method
from slipway.planning.lmi import LmiSetup, lmi_setup, rendered
from slipway.planning.lmi_frameworks import frameworks_of
from slipway.planning.lock import is_compiled

SETTINGS_CHANNEL = "settings"
"""Input channel of the job with what `settings` gives; `weights` is the other one."""

LMI_REPOSITORY = "djl-inference"
"""Of AWS's images, in each region's registry."""

PROPERTIES_FILE = "serving.properties"
# Where SageMaker mounts the channels of a job, and uploads from.
_DIRECTORIES: Mapping[str, str] = {
    "settings": f"/opt/ml/input/data/{SETTINGS_CHANNEL}",
    "weights": "/opt/ml/input/data/weights",
    "output": "/opt/ml/model",
}
_IMAGES_OF_LMI = "djl-"


@dataclass(frozen=True)
class Partitioning:
    """What partitions a config's weights.

    Args:
        setup: what serves them.
        framework: what splits them.
        method: how it is told.
    """

    setup: LmiSetup
    framework: PartitionFramework
    method: PartitionMethod

    @property
    def name(self) -> str:
        """Framework and version, as the lock and messages name them."""
        return f"{self.framework.title} of {self.setup.image}"


def partitioning(setup: LmiSetup) -> Partitioning | None:
    """Returns what partitions ahead of time behind a handler; None where nothing does.

    Where the server picks the framework by the model, nothing is known to.
    """
    behind = frameworks_of(setup)
    if len(behind) != 1:
        return None
    method = partition_method(behind[0].name, setup.version.version)
    return None if method is None else Partitioning(setup, behind[0], method)


def job_arguments(found: Partitioning) -> tuple[str, ...]:
    """Returns the container's arguments in the training job."""
    serving = found.setup.serving
    values = {
        **_DIRECTORIES,
        "tensor_parallel_degree": serving.tensor_parallel_degree,
        "pipeline_parallel_degree": serving.pipeline_parallel_degree,
    }
    return tuple(argument.format_map(values) for argument in found.method.arguments)


def job_settings(found: Partitioning) -> dict[str, str]:
    """Returns keys and values of the job's serving.properties: what decides the parts, no more."""
    setup, method = found.setup, found.method
    serving = setup.serving
    properties: dict[str, str] = {}
    if method.engine is not None:
        if setup.entry_point is None:
            raise ValueError(f"{found.name} has no handler that partitions")
        properties = {
            "engine": setup.engine,
            "option.entryPoint": setup.entry_point,
            "option.model_id": _DIRECTORIES["weights"],
            "option.save_mp_checkpoint_path": _DIRECTORIES["output"],
        }
    properties["option.tensor_parallel_degree"] = str(serving.tensor_parallel_degree)
    if serving.pipeline_parallel_degree > 1:
        properties["option.pipeline_parallel_degree"] = str(serving.pipeline_parallel_degree)
    properties[f"option.{setup.dtype_key}"] = setup.dtype_value
    if serving.trust_remote_code:
        properties["option.trust_remote_code"] = rendered(True)
    if method.options is None and serving.max_rolling_batch_size is not None:
        properties["option.max_rolling_batch_size"] = str(serving.max_rolling_batch_size)
    for key, value in sorted(serving.options.items()):
        if method.options is None or key in method.options:
            properties[f"option.{key}"] = rendered(value)
    return properties


def job_files(found: Partitioning) -> dict[str, bytes]:
    """Returns the files of the job's channel of settings.

    The command splits each line at the first `=` and knows none of the escapes of Java's format.
    A rule refuses a value that has a line of its own.
    """
    lines = "".join(f"{key}={value}\n" for key, value in job_settings(found).items())
    return {PROPERTIES_FILE: lines.encode()}


def shard_properties(setup: LmiSetup) -> dict[str, str]:
    """Returns the keys of serving.properties with which the server loads what was partitioned."""
    found = partitioning(setup)
    adds = {} if found is None else found.method.adds
    return {f"option.{key}": value for key, value in adds.items()}


def loading_properties(config: ModelConfig, environment: Environment) -> dict[str, str]:
    """Returns what the weights need to be loaded as an environment has them: partitioned, or not.

    Raises:
        UnknownVersionError: there is no such image.
    """
    if not isinstance(config.serving, LmiServing) or not is_compiled(config, environment):
        return {}
    return shard_properties(lmi_setup(config.serving))


def partitioning_of(config: ModelConfig) -> Partitioning:
    """Returns what partitions a config that breaks no rule and has `compile`.

    Raises:
        ValueError: nothing does.
    """
    if not isinstance(config.serving, LmiServing):
        raise TypeError(f"{config.name} is not served by LMI but by {config.serving.container}")
    found = partitioning(lmi_setup(config.serving))
    if found is None or found.method.refused is not None:
        raise ValueError(f"{config.name}: nothing partitions its weights ahead of time")
    return found


def image_accounts(region: str) -> tuple[str, ...]:
    """Returns the registries of AWS's LMI images in a region; none where no source says."""
    accounts: set[str] = set()
    for framework in frameworks():
        if not framework.startswith(_IMAGES_OF_LMI):
            continue
        for version in versions(framework):
            try:
                account = image(framework, version, region).account
            except UnknownImageError:
                continue
            if account is not None:
                accounts.add(account)
    return tuple(sorted(accounts))
