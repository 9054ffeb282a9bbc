"""The variables that tell an LMI container what serving.properties would.

For `configuration: environment`. They are made of the very properties, so that the two forms cannot
drift apart. How DJL Serving reads them from 0.28 on is in its sources: ModelStore.java (ModelServer
in 0.28), ModelInfo.java, ConfigManager.java and LmiConfigRecommender.java. OPTION_X is the option
x, and SERVING_X is the server's own default of the key x.

No variable names the weights: SageMaker places them in the model store, /opt/ml/model, and the
server takes that directory for its one model. (Sources: mapModelUrl of the same classes;
serving/docs/lmi, deployment_guide/configurations.md of 0.36.) HF_MODEL_ID would name a second one.
"""

import re
from collections.abc import Mapping

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
