"""LMI images, also earlier ones, and what a rule or an advice says of a config on one."""

from typing import Any

from slipway.config.environments import Environment
from slipway.planning.deployment import Rule
from slipway.planning.families import FAMILIES, deployment_of
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.rule_findings import findings

FT = ("djl-fastertransformer", "0.24.0")
DEEPSPEED = ("djl-deepspeed", "0.27.0")
VLLM = ("djl-lmi", "0.36.0")
NEURONX = ("djl-neuronx", "0.27.0")
TRTLLM = ("djl-tensorrtllm", "0.30.0")


def sections(base: tuple[str, str], **serving: Any) -> dict[str, Any]:
    framework, version = base
    section = {"container": "lmi", "framework": framework, "version": version, "dtype": "fp32"}
    return {
        "serving": section | serving,
        "endpoint": {
            "instances": ["ml.inf2.48xlarge" if framework == "djl-neuronx" else "ml.g5.12xlarge"],
            "container_startup_health_check_timeout_seconds": 1200,
            "network_isolation": False,
        },
    }


def found(
    rule: Rule,
    image: tuple[str, str],
    *,
    endpoint: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    environment: Environment = LOCAL,
    instance: Any = None,
    variables: dict[str, str] | None = None,
    **serving: Any,
) -> list[tuple[str, str, str]]:
    given = sections(image, **serving, environment=variables or {})
    given["endpoint"] |= endpoint or {}
    if model is not None:
        given["model"] = model
    return findings(rule, environment, instance, **given)


def option(
    rule: Rule, image: tuple[str, str], key: str, value: Any, **serving: Any
) -> list[tuple[str, str]]:
    problems = found(rule, image, options={key: value}, **serving)
    assert all(field == f"serving.options.{key}" for field, _, _ in problems)
    return [(message, remedy) for _, message, remedy in problems]


def warnings(image: tuple[str, str], *, on: str = "", family: str = "gpt2", **serving: Any) -> Any:
    given = sections(image, **serving)
    if on:
        given["endpoint"]["instances"] = [on]
    config = model_config(**given, model={"family": family})
    found = FAMILIES["lmi"].warnings(deployment_of(config, LOCAL))
    return [(warning.code, warning.message) for warning in found]


ACCELERATE = {"entry_point": "djl_python.huggingface", "rolling_batch": "disable"}
FT_021 = ("djl-fastertransformer", "0.21.0")
FT_022 = ("djl-fastertransformer", "0.22.1")
DEEPSPEED_022 = ("djl-deepspeed", "0.22.1")
DEEPSPEED_023 = ("djl-deepspeed", "0.23.0")
LMI_029 = ("djl-lmi", "0.29.0")
LMI_030 = ("djl-lmi", "0.30.0")
LMI_032 = ("djl-lmi", "0.32.0")
READER = "djl_python.huggingface of djl-lmi 0.36.0"
