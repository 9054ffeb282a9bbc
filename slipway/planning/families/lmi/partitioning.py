"""LMI weights that are partitioned before they are served: the job, and how they load.

The image's own command splits the weights, on as many GPUs as will serve them. It writes the parts,
and a serving.properties of its own beside them. That file is compared with what Slipway publishes
and not served: it names a directory of the job, and knows nothing of the other settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.facts.lmi.frameworks import (
    PartitionFramework,
    images_with,
    partition_framework,
    possible_frameworks,
    rolling_batches_of,
)
from slipway.facts.lmi.partition import PartitionMethod, partition_method
from slipway.planning.compiling import SETTINGS_CHANNEL
from slipway.planning.families.lmi.setup import OFF, LmiSetup, rendered

PROPERTIES_FILE = "serving.properties"
# Where SageMaker mounts the channels of a job, and uploads from.
_DIRECTORIES: Mapping[str, str] = {
    "settings": f"/opt/ml/input/data/{SETTINGS_CHANNEL}",
    "weights": "/opt/ml/input/data/weights",
    "output": "/opt/ml/model",
}


@dataclass(frozen=True)
class Partitioning:
    setup: LmiSetup
    framework: PartitionFramework
    method: PartitionMethod

    @property
    def name(self) -> str:
        """Returns framework and version, as the lock and messages name them."""
        return f"{self.framework.title} of {self.setup.image}"

    @property
    def loading(self) -> dict[str, str]:
        """Returns the keys of serving.properties with which the server loads the parts."""
        return {f"option.{key}": value for key, value in self.method.adds.items()}


def partitioning(setup: LmiSetup) -> Partitioning | None:
    """Returns what partitions ahead of time behind a handler; None where not one thing does."""
    behind = frameworks_of(setup)
    if len(behind) != 1:
        return None
    method = partition_method(behind[0].name, setup.version.version)
    return None if method is None else Partitioning(setup, behind[0], method)


def job_arguments(found: Partitioning) -> tuple[str, ...]:
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
        if setup.is_server_key(key):
            continue  # no server runs in the job
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


def frameworks_of(
    setup: LmiSetup, *, rolling_batch: str | None = None
) -> tuple[PartitionFramework, ...]:
    """Returns what may partition the model; none for a model.py of one's own.

    There are several where the server chooses by the model. A rolling batch is looked at in place
    of the config's.
    """
    if setup.handler is None:
        return ()
    version, batch = setup.version.version, rolling_batch or setup.rolling_batch or OFF
    names = possible_frameworks(setup.version, setup.handler, setup.engine, batch)
    return tuple(partition_framework(name, version) for name in names if images_with(name, version))


def splits_layers(setup: LmiSetup) -> bool:
    """Whether a degree may split the layers themselves, and with them the attention heads."""
    frameworks = frameworks_of(setup)
    return not frameworks or any(each.tensor_parallel.value != "no" for each in frameworks)


def may_roll(setup: LmiSetup) -> bool:
    """Whether requests may join and leave a running batch of the handler's."""
    batches = rolling_batches_of(setup.version, setup.engine, setup.rolling_batch or OFF)
    return any(batch != OFF for batch in batches)
