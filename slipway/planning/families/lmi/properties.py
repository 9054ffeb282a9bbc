"""The keys and values of serving.properties, and the variables that say the same.

A key that the version does not read is left out here. The rules of this folder check whether the
rest goes together.

The variables, for `configuration: environment`, are made of the very properties, so that the two
forms cannot drift apart. How DJL Serving reads them from 0.28 on is in its sources: ModelStore.java
(ModelServer in 0.28), ModelInfo.java, ConfigManager.java and LmiConfigRecommender.java. OPTION_X is
the option x, and SERVING_X is the server's own default of the key x.

No variable names the weights: SageMaker places them in the model store, /opt/ml/model, and the
server takes that directory for its one model. (Sources: mapModelUrl of the same classes;
serving/docs/lmi, deployment_guide/configurations.md of 0.36.) HF_MODEL_ID would name a second one.
"""

import re
from collections.abc import Mapping

from slipway.planning.families.lmi.handlers import brings_handler
from slipway.planning.families.lmi.setup import OFF, LmiSetup, rendered

# Calls past `predict_timeout` that a server survives. From 0.30 on its own default is none: after
# one slow request /ping is 500 for good. Before, it was this.
_RETRIES = 10

FIELDS: Mapping[str, str] = {
    "batch_size": "serving.max_batch_size",
    "data_type": "serving.dtype",
    "dtype": "serving.dtype",
    "engine": "serving.engine",
    "entryPoint": "serving.entry_point",
    "env": "serving.environment",
    "job_queue_size": "serving.max_queue_length",
    "max_batch_delay": "serving.max_batch_delay_milliseconds",
    "max_rolling_batch_size": "serving.max_rolling_batch_size",
    "model_id": "artifacts.weights",
    "model_loading_timeout": "serving.model_loading_timeout_seconds",
    "pipeline_parallel_degree": "serving.pipeline_parallel_degree",
    "predict_timeout": "serving.predict_timeout_seconds",
    "rolling_batch": "serving.rolling_batch",
    "s3url": "artifacts.weights",
    "tensor_parallel_degree": "serving.tensor_parallel_degree",
    "trust_remote_code": "serving.trust_remote_code",
}
"""Keys of serving.properties that the config has a field for, without `option.`."""


def lmi_properties(
    setup: LmiSetup,
    loading_timeout_seconds: int,
    weights_uri: str | None,
    loading: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Returns the keys and values of serving.properties, in the order of the file.

    Values are in the form that the server parses. The writer of the file adds the escapes of Java's
    properties format.

    Args:
        setup: of a config that breaks no rule.
        loading_timeout_seconds: limit of the server's own for loading the model.
        weights_uri: S3 prefix of the weights' files, which the container copies; None if they are
            in the model's directory.
        loading: settings with which parts of weights are loaded; None for unpartitioned weights.
    """
    serving, version = setup.serving, setup.version
    properties = {"engine": setup.engine}
    # Beside a model.py the server would take that one for the entry point.
    if setup.entry_point is not None and (serving.script or not setup.entry_point_is_default):
        properties["option.entryPoint"] = setup.entry_point
    if version.weights.s3 and weights_uri is not None:
        properties[f"option.{version.weights.s3[0]}"] = weights_uri
    properties |= _handler_properties(setup)
    properties |= loading or {}
    properties |= _batch_properties(setup)
    if "job_queue_size" in version.server_keys:
        properties["job_queue_size"] = str(serving.max_queue_length)
    retries = version.server_keys.get("retry_threshold")
    if retries is not None and retries.default == 0 and setup.handler is not None:
        properties["retry_threshold"] = str(_RETRIES)
    if setup.handler is not None:
        properties["option.predict_timeout"] = str(serving.predict_timeout_seconds)
        properties["option.model_loading_timeout"] = str(loading_timeout_seconds)
    for key, value in sorted(serving.options.items()):
        name = key if setup.is_server_key(key) else f"option.{key}"
        properties[name] = rendered(value)
    return properties


def _handler_properties(setup: LmiSetup) -> dict[str, str]:
    serving = setup.serving
    properties: dict[str, str] = {}
    if setup.reads("tensor_parallel_degree"):
        # Without it some versions take every accelerator for one copy, and some refuse to start.
        properties["option.tensor_parallel_degree"] = str(serving.tensor_parallel_degree)
    if serving.pipeline_parallel_degree > 1 and setup.reads("pipeline_parallel_degree"):
        properties["option.pipeline_parallel_degree"] = str(serving.pipeline_parallel_degree)
    # A model.py is told no precision by `auto`: it might take the word for the name of one.
    if setup.reads(setup.dtype_key) and (setup.is_settled or serving.dtype != "auto"):
        properties[f"option.{setup.dtype_key}"] = setup.dtype_value
    # `false` is written too: a variable of the container would count otherwise.
    if "trust_remote_code" in setup.options or (
        serving.trust_remote_code and setup.reads("trust_remote_code")
    ):
        properties["option.trust_remote_code"] = rendered(serving.trust_remote_code)
    return properties


def _batch_properties(setup: LmiSetup) -> dict[str, str]:
    serving = setup.serving
    properties: dict[str, str] = {}
    if serving.max_batch_size > 1:
        if "batch_size" in setup.version.server_keys:
            properties["batch_size"] = str(serving.max_batch_size)
            properties["max_batch_delay"] = str(serving.max_batch_delay_milliseconds)
        return properties
    if serving.rolling_batch is not None and setup.reads("rolling_batch"):
        properties["option.rolling_batch"] = serving.rolling_batch
    elif brings_handler(serving) and setup.version.rolls_unless_told:
        # A model.py serves no rolling batch.
        properties["option.rolling_batch"] = OFF
    size = serving.max_rolling_batch_size
    # A model.py may have a rolling batch of its own.
    rolls = setup.rolls or not setup.is_settled
    if size is not None and rolls and setup.reads("max_rolling_batch_size"):
        properties["option.max_rolling_batch_size"] = str(size)
    return properties


MODEL_VARIABLE = "HF_MODEL_ID"
"""Named the weights, by their prefix in S3, in what earlier versions of Slipway deployed."""

MAX_VALUE_LENGTH = 1024
"""Characters of a variable's value (EnvironmentValue of SageMaker's API)."""

MAX_VARIABLES = 100
"""Variables of a container (EnvironmentMap of SageMaker's API)."""

_OPTION = "option."
_BATCH_SIZE, _ROLLING_BATCH = "batch_size", "option.rolling_batch"
SERVER_VARIABLES: Mapping[str, str] = {
    _BATCH_SIZE: "SERVING_BATCH_SIZE",
    "engine": "OPTION_ENGINE",
    "job_queue_size": "SERVING_JOB_QUEUE_SIZE",
    "max_batch_delay": "SERVING_MAX_BATCH_DELAY",
    "retry_threshold": "SERVING_RETRY_THRESHOLD",
}
"""Keys of the server's, and the variables of its defaults, which apply to its one model."""

# OPTION_ENGINE is the engine, and OPTION_ENTRYPOINT the entry point.
_TAKEN = ("engine", "entrypoint")


def option_variable(key: str) -> str | None:
    """Returns the variable of an option without `option.`; None where none leads to it.

    The server makes small letters of a name in capitals, digits and underscores, and leaves any
    other as it is.
    """
    if key == "entryPoint":
        return "OPTION_ENTRYPOINT"
    if key in _TAKEN:
        return None
    if re.fullmatch(r"[a-z0-9_]+", key, re.ASCII):
        return f"OPTION_{key.upper()}"
    has_small_letter = re.search(r"[a-z]", key) is not None
    return f"OPTION_{key}" if has_small_letter and re.fullmatch(r"[A-Za-z0-9_]+", key) else None


def variables(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that say what properties say; a `ValueError` if one cannot."""
    found: dict[str, str] = {}
    for key, value in properties.items():
        name = SERVER_VARIABLES.get(key)
        if key.startswith(_OPTION):
            name = option_variable(key.removeprefix(_OPTION))
        if name is None or not value or name in found:
            raise ValueError(f"no variable says {key}={value}")
        found[name] = value
    if int(properties.get(_BATCH_SIZE, "1")) > 1 and _ROLLING_BATCH not in properties:
        # The server does so itself where the file has a batch size, and does not look at the
        # variable of it.
        found["OPTION_ROLLING_BATCH"] = "disable"
    return found
