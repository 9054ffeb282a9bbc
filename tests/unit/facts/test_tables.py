"""What holds for every table of facts: its date, its form, and that only a look-up reads it."""

import datetime
import json
import subprocess
import sys

import pytest

from tools.refresh_facts.tables import FACTS, render

# At which depth a table has one entry a line; the others are laid out by hand.
LEVELS = {
    "base_digests.json": 2,
    "builds.json": 4,
    "dashboards.json": 2,
    "gpus.json": 2,
    "images.json": 3,
    "instances.json": 2,
    "lmi/lmi.json": 2,
    "lmi/lmi_engines.json": 3,
    "lmi/lmi_frameworks.json": 3,
    "lmi/lmi_model_options.json": 2,
    "lmi/lmi_options.json": 3,
    "lmi/lmi_vllm.json": 2,
    "networks.json": 2,
    "prices.json": 4,
    "regions.json": 3,
    "resource_types.json": 3,
    "tensorrt/tensorrt.json": 2,
    "triton/backends.json": 2,
    "triton/model_config.json": 2,
    "triton/triton.json": 2,
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_table_has_the_form_that_refreshing_writes(name):
    text = (FACTS / name).read_text("utf-8")
    assert render(json.loads(text), levels=LEVELS[name]) == text


@pytest.mark.parametrize("path", sorted(FACTS.rglob("*.json")), ids=lambda path: path.stem)
def test_a_table_is_dated(path):
    found = json.loads(path.read_text("utf-8"))
    assert datetime.date.fromisoformat(found["as_of"]).year >= 2026


def test_importing_facts_reads_no_table_and_no_aws_library():
    code = (
        "import importlib, pkgutil, sys, slipway.facts, slipway.facts.tables as tables\n"
        "def read_table(name): raise AssertionError(name)\n"
        "tables.read_table = read_table\n"
        "for module in pkgutil.walk_packages(slipway.facts.__path__, 'slipway.facts.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
        "try: slipway.facts.lmi.frameworks.partition_frameworks()\n"
        "except AssertionError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    libraries, asked = result.stdout.splitlines()
    assert asked == "lmi/lmi_frameworks.json"
    assert "slipway" in libraries.split()
    aws = {"boto3", "botocore", "aws_cdk", "jsii", "moto", "cfnlint"}
    assert not aws & set(libraries.split())
