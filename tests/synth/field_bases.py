"""The fields of the model config, and configs in which to change them."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from slipway.config.environments import Environment
from slipway.config.fields import find, tag_of
from slipway.config.schema import ModelConfig
from tests.support.golden_cases import CASES, environment_of
from tests.support.projects import LOCAL, PRODUCTION, config_text
from tests.unit.planning.models import BERT, FLAN_T5_XXL, HUB, LLAMA_8B, lmi, neuron, triton, vllm

IMAGE = f"{LOCAL.account}.dkr.ecr.{LOCAL.region}.amazonaws.com"
_COMPILED = {
    "release": None,
    "weights": HUB | {"repository": "openai-community/gpt2"},
    "compile": {"instance": "ml.g4dn.xlarge"},
}
_COPIED = {"sample": None, "release": None, "weights": HUB}
_OPEN = {"network_isolation": False}
_SCALING = {
    "min_instance_count": 2, "max_instance_count": 6,
    "target_invocations_per_instance_per_minute": 600,
}  # fmt: skip
_SCHEDULE = {
    "name": "a", "at": "cron(0 8 ? * * *)", "min_instance_count": 2, "max_instance_count": 6,
}  # fmt: skip
_COMPONENT = {"max_copies": 2, "target_concurrent_requests_per_copy": 5}
_SLEEPING = {"mode": "scale_to_zero", "instance_count": 1}
_SERVERLESS = _OPEN | {
    **dict.fromkeys(("instances", "instance_count")),
    "model_data_download_timeout_seconds": None,
    "container_startup_health_check_timeout_seconds": None, "mode": "serverless",
    "serverless": {"memory_size_mb": 2048, "max_concurrency": 5},
}  # fmt: skip
_OF_COPIES = {"name": "a", "at": "cron(0 8 ? * * *)", "min_copies": 1, "max_copies": 4}
_VARIANTS = [{"name": "one", "weight": 1}, {"name": "two", "weight": 1}]
_OVERRIDING = {
    "instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g4dn.4xlarge"],
    "model_overrides": [
        {"instances": ["ml.g4dn.2xlarge"], "artifacts": {"release": {"path": "build/other"}}}
    ],
}
QUEUE = {
    "input": "s3://in/", "output": "s3://out/",
    "error_topic_arn": "arn:aws:sns:us-east-1:123456789012:errors",
}  # fmt: skip
_SHAPE = {"layers": 12, "hidden_size": 768, "attention_heads": 12}

# Configs to start from: the environment, and sections over those of `tests/support/projects.py`.
BASES: Mapping[str, tuple[Environment, Mapping[str, Any]]] = {
    "tensorrt": (LOCAL, {}),
    "shaped": (LOCAL, {"model": _SHAPE}),
    "encoder": (
        PRODUCTION,
        {
            "model": {"family": "bert", "parameters": 108_893_186},
            "serving": {
                "container": "tensorrt",
                "task": "question-answering",
                "sequence_length": 128,
            },
            "artifacts": _COMPILED,
        },
    ),
    "released": (PRODUCTION, {}),
    "compiled": (PRODUCTION, {"artifacts": _COMPILED}),
    "scaled": (LOCAL, {"autoscaling": _SCALING}),
    "stepped": (
        LOCAL,
        {"autoscaling": _SCALING | {"steps": [{"from_times_target": 2, "add_instances": 1}]}},
    ),
    "scheduled": (LOCAL, {"autoscaling": _SCALING | {"schedules": [_SCHEDULE]}}),
    "sleeping": (LOCAL, {"endpoint": _SLEEPING | {"scale_to_zero": _COMPONENT}}),
    "woken": (
        LOCAL,
        {"endpoint": _SLEEPING | {"scale_to_zero": _COMPONENT | {"schedules": [_OF_COPIES]}}},
    ),
    "variants": (LOCAL, {"endpoint": {"variants": _VARIANTS}}),
    "overriding": (PRODUCTION, {"endpoint": _OVERRIDING}),
    "serverless": (LOCAL, {"endpoint": _SERVERLESS}),
    "async": (LOCAL, {"endpoint": {"mode": "async", "async_inference": QUEUE}}),
    "guarded": (LOCAL, {"rollout": {"rollback_alarms": ["server_error_rate"]}}),
    "s3": (
        PRODUCTION,
        {"artifacts": _COMPILED | {"weights": {"source": "s3", "uri": "s3://w/a/"}}},
    ),
    "path": (PRODUCTION, {"artifacts": _COMPILED | {"weights": {"source": "path", "path": "a"}}}),
    "lmi": (
        PRODUCTION,
        {
            "model": LLAMA_8B,
            "serving": vllm(),
            "artifacts": _COPIED | {"size_gb": 16.1},
            "endpoint": _OPEN | {"instances": ["ml.g5.12xlarge"]},
        },
    ),
    "fastertransformer": (
        PRODUCTION,
        {
            "model": FLAN_T5_XXL,
            "serving": lmi(
                dtype="fp32", tensor_parallel_degree=4, max_input_tokens=64, max_new_tokens=16
            ),
            "artifacts": _COPIED | {"size_gb": 44.5},
            "endpoint": _OPEN | {"instances": ["ml.g5.12xlarge"]},
        },
    ),
    "own-repository": (
        LOCAL,
        {
            "serving": {"container": "triton", "version": "26.05", "repository": "triton/own"},
            "artifacts": {"sample": None, "release": None},
        },
    ),
    "custom-weights": (
        PRODUCTION,
        {
            "serving": {
                "container": "custom",
                "image_uri": f"{PRODUCTION.account}.dkr.ecr.{PRODUCTION.region}.amazonaws.com/x:1",
            },
            "artifacts": _COPIED,
        },
    ),
    "triton": (LOCAL, {"model": {"family": "t5"}, "serving": triton()}),
    "triton-compiled": (
        PRODUCTION,
        {
            "model": {"family": "t5"},
            "serving": triton(),
            "artifacts": _COMPILED | {"weights": {"source": "path", "path": "a"}},
        },
    ),
    "neuron": (
        PRODUCTION,
        {
            "model": BERT,
            "serving": neuron(framework="neuronx"),
            "artifacts": _COPIED | {"compile": {"instance": "ml.c5.4xlarge"}},
            "endpoint": {"instances": ["ml.inf2.8xlarge"]},
        },
    ),
    "pipelined": (
        PRODUCTION,
        {
            "model": BERT,
            "serving": neuron(objective="latency", expected_concurrency=48),
            "artifacts": _COPIED | {"compile": {"instance": "ml.c5.4xlarge"}},
            "endpoint": {"instances": ["ml.inf1.6xlarge"]},
        },
    ),
    "custom": (LOCAL, {"serving": {"container": "custom", "image_uri": f"{IMAGE}/x:1"}}),
}


def content_of(base: str) -> tuple[Environment, dict[str, Any]]:
    """Returns the environment and the content of a base, or of the golden case of that name."""
    if base not in BASES:
        text = (CASES / f"{base}.yaml").read_text("utf-8")
        return environment_of(base), yaml.load(text, yaml.CSafeLoader)
    environment, sections = BASES[base]
    content: dict[str, Any] = yaml.load(config_text("tiny"), yaml.CSafeLoader)
    for name, section in copy.deepcopy(dict(sections)).items():
        # Another container has other fields: nothing of the old one's is left.
        kept = {} if name == "serving" else content.get(name, {})
        content[name] = {**kept, **section}
    for key in [key for key, value in content["endpoint"].items() if value is None]:
        del content["endpoint"][key]
    return environment, content


def field_paths(model: type[BaseModel] = ModelConfig, *path: str) -> Iterator[str]:
    """Yields every field of the schema that holds no section; unions have their tag in brackets."""
    for name in model.model_fields:
        sections = find(model, (name,)).sections
        if not sections:
            yield ".".join((*path, name))
        for section in sections:
            tag = f"[{tag_of(section)}]" if len(sections) > 1 else ""
            yield from field_paths(section, *path, f"{name}{tag}")


def put(content: dict[str, Any], path: str, value: Any) -> None:
    """Sets a field of a file's content; in a list it sets that of the first element."""
    *sections, name = [part.partition("[")[0] for part in path.split(".")]
    for section in sections:
        inner = content.setdefault(section, {})
        content = inner[0] if isinstance(inner, list) else inner
    content[name] = value
