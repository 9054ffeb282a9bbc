"""Variables of an LMI container: read back as the server reads them, they are the properties."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from slipway.config.schema import ModelConfig
from slipway.facts.images import versions
from slipway.facts.lmi.versions import lmi_version, model_of_variables
from slipway.planning.families.lmi.properties import option_variable, variables
from slipway.planning.families.lmi.rules import options
from slipway.planning.families.lmi.rules import serving as serving_rules
from tests.support.deployments import lmi as deployment
from tests.support.projects import model_config
from tests.unit.planning.models import reported

WEIGHTS = "s3://slipway-artifacts/artifacts/abcd/files/"
IMAGES = [
    (framework, version)
    for framework in model_of_variables()[0]
    for version in versions(framework)
    if lmi_version(framework, version).makes_model_of_variables
]
SETTINGS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "numbers": {
        "tensor_parallel_degree": 4,
        "max_queue_length": 7,
        "predict_timeout_seconds": 30,
        "model_loading_timeout_seconds": 500,
    },
    "batches": {"max_batch_size": 8, "max_batch_delay_milliseconds": 20},
    "one by one": {"rolling_batch": "disable"},
    "an entry point": {"entry_point": "djl_python.huggingface", "rolling_batch": "disable"},
    "options": {
        "options": {
            "max_model_len": 8192,
            "gpu_memory_utilization": 0.85,
            "enable_prefix_caching": True,
            "pythonExecutable": "/opt/python",
            "modelName": "My model",
            "guided_decoding_backend": '{"a": "b = c\\\\d\\n\\u4e2d"}',
        }
    },
    "another engine": {"engine": "MPI", "trust_remote_code": True},
}


SECTION = {
    "container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16",
    "configuration": "environment",
}  # fmt: skip


def lmi(framework: str, version: str, **serving: Any) -> ModelConfig:
    image = {"framework": framework, "version": version}
    return model_config(serving=SECTION | image | serving)


def read_by_server(environment: Mapping[str, str]) -> dict[str, str]:
    """Properties that DJL Serving makes of a container's variables, as its Java does.

    ModelInfo.loadServingProperties, ConfigManager, ModelInfo.getStatus, ModelStore.initialize.
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        if not value:
            continue
        # It would make a second model.
        assert name != "HF_MODEL_ID"
        if name.startswith("SERVING_"):
            found[name.removeprefix("SERVING_").lower()] = value
        elif name.startswith("OPTION_"):
            key = name.removeprefix("OPTION_")
            if re.fullmatch(r"[A-Z_\d]+", key):
                key = key.lower()
            if key == "engine":
                found["engine"] = value
                continue
            found[f"option.{'entryPoint' if key == 'entrypoint' else key}"] = value
    return found


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("image", IMAGES, ids=" ".join)
def test_they_say_what_the_file_says(image: tuple[str, str], settings: dict[str, Any]):
    config = lmi(*image, **settings)
    properties = deployment(config).properties()
    if settings.get("max_batch_size", 1) > 1:
        # What the server makes of a file with a batch size (LmiConfigRecommender).
        properties["option.rolling_batch"] = "disable"
    assert read_by_server(variables(deployment(config).properties())) == properties


def test_there_are_images_of_both_frameworks():
    assert {framework for framework, _ in IMAGES} == set(model_of_variables()[0])
    assert ("djl-lmi", "0.28.0") in IMAGES
    assert ("djl-tensorrtllm", "0.27.0") not in IMAGES


def test_vllm_word_for_word():
    config = lmi(
        "djl-lmi", "0.36.0", dtype="bf16", max_rolling_batch_size=64, rolling_batch="vllm",
        options={"max_model_len": 8192}, environment={"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert deployment(config).environment_with(has_settings=True) == {
        "OPTION_ENGINE": "Python",
        "OPTION_TENSOR_PARALLEL_DEGREE": "1",
        "OPTION_DTYPE": "bf16",
        "OPTION_TRUST_REMOTE_CODE": "false",
        "OPTION_ROLLING_BATCH": "vllm",
        "OPTION_MAX_ROLLING_BATCH_SIZE": "64",
        "SERVING_JOB_QUEUE_SIZE": "1000",
        "SERVING_RETRY_THRESHOLD": "10",
        "OPTION_PREDICT_TIMEOUT": "60",
        "OPTION_MODEL_LOADING_TIMEOUT": "600",
        "OPTION_MAX_MODEL_LEN": "8192",
        "OMP_NUM_THREADS": "1",
    }
    # A file needs no variable.
    config = lmi("djl-lmi", "0.36.0", configuration="file", environment={"OMP_NUM_THREADS": "1"})
    assert deployment(config).container_environment() == {"OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("max_model_len", "OPTION_MAX_MODEL_LEN"),
        ("load_in_4bit", "OPTION_LOAD_IN_4BIT"),
        ("entryPoint", "OPTION_ENTRYPOINT"),
        ("pythonExecutable", "OPTION_pythonExecutable"),
        # Each would be read as another key, or by nobody.
        ("engine", None),
        ("entrypoint", None),
        ("DTYPE", None),
        ("max-model-len", None),
        ("a.b", None),
        ("", None),
    ],
)
def test_what_leads_to_an_option(key: str, name: str | None):
    assert option_variable(key) == name
    if name is not None:
        assert read_by_server({name: "x"}) == {f"option.{key}": "x"}


@pytest.mark.parametrize(
    "properties",
    [
        {"option.max-model-len": "1"},
        {"gpu.maxWorkers": "1"},
        {"option.task": ""},
        {"option.A": "1"},
    ],
)
def test_what_no_variable_says_is_a_bug_of_ours_here(properties: dict[str, str]):
    """A rule refuses the config before."""
    (said,) = (f"{key}={value}" for key, value in properties.items())
    with pytest.raises(ValueError, match=f"no variable says {re.escape(said)}"):
        variables(properties)


def test_what_the_config_says_is_no_variable_besides():
    rule = options.environment_leaves_the_file_alone
    for name in variables(deployment(lmi("djl-lmi", "0.36.0")).properties()):
        assert len(reported(rule, serving={**SECTION, "environment": {name: "1"}})) == 1, name


def test_a_variable_has_a_thousand_characters():
    rule = serving_rules.options_have_variables
    longest, longer = ({"chat_template": "x" * length} for length in (1024, 1025))
    assert reported(rule, serving={**SECTION, "options": longest}) == []
    assert reported(rule, serving={**SECTION, "options": longer}) == [
        "serving.options.chat_template: `chat_template` has 1025 characters, and a variable of a "
        "container has 1024 at most [SW364]\n    Use `configuration: file`."
    ]


def test_sagemaker_takes_a_hundred_variables():
    rule = serving_rules.variables_are_few
    few = {f"V{number}": "1" for number in range(90)}
    own = 8  # engine, degree, precision, trust, queue, retries, two time-outs
    assert reported(rule, serving={**SECTION, "environment": few}) == []
    options = {f"extra_{number}": 1 for number in range(100 - 90 - own + 1)}
    assert reported(rule, serving={**SECTION, "environment": few, "options": options}) == [
        "serving.configuration: the container would have 101 variables; SageMaker takes 100 "
        "[SW364]\n    Use `configuration: file`, or remove some."
    ]
