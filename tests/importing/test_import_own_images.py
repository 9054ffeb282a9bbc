"""`slipway import --endpoint`: an image of Slipway's says again what the config said."""

import json

import pytest

from slipway.facts.instances import instance_types
from slipway.importing.own_images import Variables
from slipway.importing.tensorrt import tensorrt_section
from slipway.planning.families import deployment_of
from slipway.project import Project
from tests.support.described_endpoints import answers
from tests.support.golden_cases import plan_content
from tests.support.projects import PRODUCTION


@pytest.mark.parametrize(
    ("case", "guessed"),
    [
        ("neuron-inf2", {"objective", "sequence_length"}),
        ("neuron-latency", {"objective", "sequence_length"}),
        ("tensorrt-v100", {"dtype"}),
        ("triton-tensorrt", {"backend"}),
    ],
)
def test_the_plan_has_the_same_container(tmp_path, import_endpoint, case, guessed):
    plan = plan_content(case)
    given = answers()
    given["DescribeModel"]["PrimaryContainer"] |= {
        "Image": plan["image"]["uri"],
        "Environment": {**plan["container_environment"], "SLIPWAY_LATER": "1"},
    }
    variant = given["DescribeEndpointConfig"]["ProductionVariants"][0]
    variant["InstanceType"] = plan["variants"][0]["instance_types"][0]
    network = ("--family", family_of(case), "--parameters", "60506624")
    code, output, errors = import_endpoint(given, *network, "--json", name=case)
    report = json.loads(output)
    assert (code, errors, report["problems"]) == (0, "", [])
    config = Project(tmp_path).config(case, "production").config
    deployment = deployment_of(config, PRODUCTION)
    own = deployment.container_environment()
    later = own.pop("SLIPWAY_LATER", None) or [
        each["value"] for each in report["left_out"] if each["name"] == "SLIPWAY_LATER"
    ]
    assert later in ("1", ["1"])
    assert own == plan["container_environment"]
    assert plan["image"]["tag"].startswith(f"{deployment.image_base.tag}-")
    guesses = {each["field"] for each in report["guesses"] if each["field"].startswith("serving.")}
    assert guesses == {f"serving.{name}" for name in guessed}


def test_gpt2_on_processors_is_read_in_a_precision_of_processors():
    found = tensorrt_section(Variables({}), "trt10.13-0", instance_types()["ml.c7i.2xlarge"])
    assert (found.serving["dtype"], found.target) == ("fp32", "cpu")


def family_of(case: str) -> str:
    return {"neuron": "bert", "tensorrt": "gpt2", "triton": "t5"}[case.partition("-")[0]]
