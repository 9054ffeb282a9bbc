"""What `slipway plan` says of where an LMI container's settings and weights are."""

from __future__ import annotations

import pytest

from slipway.cli.plan_text import describe_plan
from slipway.facts.instances import instance_types
from slipway.planning.resolve import resolve
from tests.support.projects import IMAGE_DIGESTS, PRODUCTION, lock_for, model_config


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
    plan = resolve(config, instance_types(), PRODUCTION, lock_for(config), IMAGE_DIGESTS)
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
