"""What `slipway plan` says of where a container's settings and files are."""

from typing import Any

import pytest

from slipway.cli.plan_text import plan_rows
from tests.support.plans import plan_for
from tests.support.projects import PRODUCTION, model_config

BOUNDS: dict[str, Any] = {"min_instance_count": 1, "max_instance_count": 6}


def told(**sections: Any) -> dict[str, str]:
    """Returns the rows of a config in production; of equal labels the last one."""
    return dict(plan_rows(plan_for(model_config(**sections), PRODUCTION)))


@pytest.mark.parametrize("configuration", ["file", "environment"])
def test_settings_are_properties_of_a_package_or_variables(configuration: str):
    serving = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16"}
    config = model_config(
        serving=serving | {"configuration": configuration},
        artifacts={"release": None, "weights": {"source": "s3", "uri": "s3://my-models/qwen2/"}},
        endpoint={
            "instances": ["ml.g5.xlarge"],
            "network_isolation": configuration == "environment",
        },
    )
    lines = [list(row) for row in plan_rows(plan_for(config, PRODUCTION))]
    labels = [label.split()[0] for label, _ in lines]
    packaged = configuration == "file"
    assert labels.count("artifact") == 1
    # Beside the package the container copies them; else they are the artifact.
    assert labels.count("weights") == packaged
    assert (["property", "option.dtype=fp16"] in lines) is packaged
    assert (["env OPTION_DTYPE", "fp16"] in lines) is not packaged
    assert ("property" in labels) is packaged


@pytest.mark.parametrize(
    ("artifacts", "key"),
    [
        ({}, "alias/slipway-production/tiny"),
        (
            {"key_arn": "arn:aws:kms:eu-west-1:210987654321:key/0a"},
            "arn:aws:kms:eu-west-1:210987654321:key/0a",
        ),
    ],
)
def test_an_isolated_model_shows_its_prefix_and_key(artifacts: dict[str, str], key: str):
    lines = told(artifacts={"isolated": True, **artifacts})
    assert lines["isolated"] == f"only this model's role reads models/tiny/, with the key {key}"
    assert "isolated" not in told()


@pytest.mark.parametrize(
    ("target", "scaling", "step"),
    [
        ("target_invocations_per_instance_per_minute", "600 invocations per minute", "900"),
        ("target_concurrent_requests_per_instance", "8 concurrent requests", "12"),
        ("target_gpu_utilization_percent", "60 % use of the GPUs", "90"),
    ],
)
def test_the_target_and_the_steps_are_told(target: str, scaling: str, step: str):
    value, _, unit = scaling.partition(" ")
    steps = [{"from_times_target": 1.5, "add_instances": 4}]
    lines = told(autoscaling=BOUNDS | {target: int(value), "steps": steps})
    assert lines["autoscaling"] == f"1 to 6 instances at {scaling} each"
    assert lines["step"] == f"4 instances more from {step} {unit} each"


def test_protection_and_a_reservation_are_told():
    arn = "arn:aws:sagemaker:eu-west-1:210987654321:training-plan/search"
    lines = told(endpoint={"capacity_reservation_arn": arn, "termination_protection": True})
    assert lines["reservation"] == f"only in the capacity of {arn}"
    assert lines["protection"] == "the stack cannot be deleted until termination_protection is off"


def test_a_role_and_metrics_are_told():
    role = "arn:aws:iam::210987654321:role/serving"
    metrics = {"enhanced": True, "publish_frequency_seconds": 10}
    lines = told(endpoint={"execution_role_arn": role, "metrics": metrics})
    assert lines["role"] == (
        f"{role}, whose rights `slipway iam tiny --execution-role --env production` prints"
    )
    assert lines["metrics"] == (
        "of all instances and of each, every 10 s, with detailed observability"
    )
