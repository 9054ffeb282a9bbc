"""Reads the settings of an LMI container that is called: its variables, or the package beside them.

How DJL Serving reads them is in its sources: ModelStore.java, ModelInfo.java, ConfigManager.java
and LmiConfigRecommender.java. `planning.families.lmi.properties` is the inverse.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from slipway.deployed.described import Package
from slipway.importing.call import Call
from slipway.importing.lmi.source import LmiSource, read_directory
from slipway.importing.own_images import own_image
from slipway.planning.families.lmi.properties import SERVER_VARIABLES

_KEYS: Mapping[str, str] = {
    **{variable: key for key, variable in SERVER_VARIABLES.items()},
    "HF_MODEL_ID": "option.model_id",
    "HF_REVISION": "option.revision",
    "HF_TASK": "option.task",
    "HF_TRUST_REMOTE_CODE": "option.trust_remote_code",
    "MODEL_LOADING_TIMEOUT": "option.model_loading_timeout",
    "OPTION_ENTRYPOINT": "option.entryPoint",
    "PIPELINE_PARALLEL_DEGREE": "option.pipeline_parallel_degree",
    "PREDICT_TIMEOUT": "option.predict_timeout",
    "TENSOR_PARALLEL_DEGREE": "option.tensor_parallel_degree",
}
_OPTION = "OPTION_"
_LOAD_MODELS = "SERVING_LOAD_MODELS"
_ARCHIVE = re.compile(r"\.(tar\.gz|tgz|tar)$")


def source_of_call(call: Call) -> LmiSource:
    settings: dict[str, str] = {}
    names: dict[str, str] = {}
    others: dict[str, str] = {}
    for variable, value in call.environment.items():
        key = _KEYS.get(variable)
        if key is None and variable.startswith(_OPTION):
            key = f"option.{variable.removeprefix(_OPTION).lower()}"
        if variable == _LOAD_MODELS and (found := re.match(r"\w+::(\w+)=", value)):
            key, value = "engine", found[1]
        if key is None:
            others[variable] = value
        else:
            settings[key], names[key] = value, variable
    has_weights = call.model_data is not None and not _ARCHIVE.search(call.model_data)
    if has_weights and settings.get("option.model_id", "/opt/ml/model").startswith("/opt/ml/model"):
        settings["option.model_id"], names["option.model_id"] = call.model_data or "", "model_data"
    elif "option.model_id" not in settings and call.model is not None:
        settings["option.model_id"], names["option.model_id"] = call.model, "model"
    return LmiSource(
        origin=call.origin,
        kind=call.origin,
        settings=settings,
        names=names,
        repeated=call.left_out,
        environment=others,
        is_built=own_image(call.image_uri or "") is not None,
    )


def source_of_package(call: Call, package: Package) -> LmiSource:
    """Returns the settings of a package and the variables beside it; raises `UserError`."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in package.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        source = read_directory(root, (call.model_data or "").rstrip("/"))
    return replace(
        source,
        origin=call.origin,
        repeated=[*source.repeated, *call.left_out],
        environment=call.environment,
        directory=None,
        is_built=own_image(call.image_uri or "") is not None,
    )
