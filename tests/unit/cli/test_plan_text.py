"""What `slipway plan` says of where a container's settings and files are."""

import re

import pytest

from slipway.cli.plan_text import describe_plan
from tests.support.plans import plan_for
from tests.support.projects import PRODUCTION, model_config


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
    plan = plan_for(config, PRODUCTION)
    lines = [line.split(maxsplit=1) for line in describe_plan(plan).splitlines()]
    labels = [label for label, _ in lines]
    packaged = configuration == "file"
    assert labels.count("artifact") == 1
    # Beside the package the container copies them; else they are the artifact.
    assert labels.count("weights") == packaged
    assert (["property", "option.dtype=fp16"] in lines) is packaged
    told = [value.split() for label, value in lines if label == "env"]
    assert (["OPTION_DTYPE", "fp16"] in told) is not packaged
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
    config = model_config(artifacts={"isolated": True, **artifacts})
    plan = plan_for(config, PRODUCTION)
    lines = dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())
    assert lines["isolated"] == f"only this model's role reads models/tiny/, with the key {key}"
    shared = model_config()
    plan = plan_for(shared, PRODUCTION)
    assert "isolated" not in describe_plan(plan)


def test_schedules_and_the_maximum_are_told():
    schedule = {"min_instance_count": 4, "max_instance_count": 12}
    config = model_config(
        autoscaling={
            "min_instance_count": 1,
            "max_instance_count": 6,
            "target_invocations_per_instance_per_minute": 600,
            "schedules": [
                schedule
                | {
                    "name": "workday",
                    "at": "cron(0 7 ? * MON-FRI *)",
                    "time_zone": "Europe/Zurich",
                },
                schedule | {"name": "hourly", "at": "rate(1 hour)", "max_instance_count": 9},
            ],
        },
        alarms={"model_latency_p99_milliseconds": 600, "at_max_capacity": True},
    )
    plan = plan_for(config, PRODUCTION)
    lines = [line.split("  ", 1) for line in describe_plan(plan).splitlines()]
    told = [text.strip() for label, text in lines if label.strip() == "schedule"]
    assert told == [
        "workday: 4 to 12 instances from cron(0 7 ? * MON-FRI *) in Europe/Zurich",
        "hourly: 4 to 9 instances from rate(1 hour)",
    ]
    assert ["at maximum", "alarm at 12 instances"] in [[a, b.strip()] for a, b in lines]
    # The cost goes up to the largest fleet of any schedule.
    least, most = plan.cost.instances.minimum, plan.cost.instances.maximum
    assert least is not None
    assert most == pytest.approx(12 * least)


@pytest.mark.parametrize(
    ("target", "value", "scaling", "step"),
    [
        (
            "target_invocations_per_instance_per_minute",
            600,
            "1 to 6 instances at 600 invocations per minute each",
            "4 instances more from 900 invocations per minute each",
        ),
        (
            "target_concurrent_requests_per_instance",
            8,
            "1 to 6 instances at 8 concurrent requests each",
            "4 instances more from 12 concurrent requests each",
        ),
        (
            "target_gpu_utilization_percent",
            60,
            "1 to 6 instances at 60 % use of the GPUs each",
            "4 instances more from 90 % use of the GPUs each",
        ),
    ],
)
def test_the_target_and_the_steps_are_told(target: str, value: int, scaling: str, step: str):
    steps = [{"from_times_target": 1.5, "add_instances": 4}]
    config = model_config(
        autoscaling={
            "min_instance_count": 1,
            "max_instance_count": 6,
            target: value,
            "steps": steps,
        }
    )
    plan = plan_for(config, PRODUCTION)
    lines = dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())
    assert (lines["autoscaling"], lines["step"]) == (scaling, step)


def test_protection_and_a_reservation_are_told():
    arn = "arn:aws:sagemaker:eu-west-1:210987654321:training-plan/search"
    config = model_config(
        endpoint={"capacity_reservation_arn": arn, "termination_protection": True}
    )
    plan = plan_for(config, PRODUCTION)
    lines = dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())
    assert lines["reservation"] == f"only in the capacity of {arn}"
    assert lines["protection"] == "the stack cannot be deleted until termination_protection is off"


def test_a_role_and_metrics_are_told():
    role = "arn:aws:iam::210987654321:role/serving"
    metrics = {"enhanced": True, "publish_frequency_seconds": 10}
    config = model_config(endpoint={"execution_role_arn": role, "metrics": metrics})
    plan = plan_for(config, PRODUCTION)
    lines = dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())
    assert lines["role"] == (
        f"{role}, whose rights `slipway iam tiny --execution-role --env production` prints"
    )
    assert lines["metrics"] == (
        "of all instances and of each, every 10 s, with detailed observability"
    )


def test_copies_are_told_in_place_of_autoscaling():
    section = {"max_copies": 6, "target_concurrent_requests_per_copy": 5}
    config = model_config(
        endpoint={
            "instances": ["ml.g4dn.12xlarge"],
            "instance_count": 1,
            "mode": "scale_to_zero",
            "scale_to_zero": section | {"accelerators_per_copy": 1},
        },
    )
    plan = plan_for(config, PRODUCTION)
    lines = dict(re.split("  +", line, maxsplit=1) for line in describe_plan(plan).splitlines())
    assert lines["copies"] == "0 to 6 at 5 concurrent requests each"
    assert lines["each copy"] == "reserves 1 accelerators, 1024 MiB of main memory"
    assert lines["to zero"] == ("0 to 2 instances, as the copies need; room for 4 copies on each")
    assert "autoscaling" not in lines
    assert lines["cost"].startswith("0 to ")
    assert "the first request then fails" in lines["warning"].lower()
