"""The tables of facts: their form, and what refreshing writes of the pinned packages."""

import datetime
import json
import subprocess
import sys

import pytest

from tools.refresh_facts import instances, regions, tables
from tools.refresh_facts.tables import FACTS, SourceError, render, run


@pytest.mark.parametrize(
    ("name", "make", "levels"),
    [("instances.json", instances.make, 2), ("regions.json", regions.make, 3)],
)
def test_the_committed_table_is_what_its_script_writes(name, make, levels):
    committed = (FACTS / name).read_text("utf-8")
    dated = {"as_of": json.loads(committed)["as_of"], **make()}
    assert render(dated, levels=levels) == committed, "run `make facts` and review the diff"


def ec2_description(**parts):
    return {
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 15_616},
        "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"]},
        **parts,
    }


def gpus(*items):
    return {"GpuInfo": {"Gpus": list(items)}}


def gpu(**parts):
    memory = {"SizeInMiB": 22_888}
    return {"Manufacturer": "NVIDIA", "Name": "A10G", "Count": 1, "MemoryInfo": memory, **parts}


def test_a_description_of_ec2_becomes_a_row():
    assert instances.row_of("ml.x.large", ec2_description()) == {
        "vcpus": 4,
        "memory_gib": 15.25,
        "architecture": "x86_64",
        "accelerator": None,
        "local_nvme_gb": 0,
    }
    disk = {"InstanceStorageInfo": {"NvmeSupport": "required", "TotalSizeInGB": 250}}
    assert instances.row_of("ml.x.large", ec2_description(**disk))["local_nvme_gb"] == 250
    row = instances.row_of("ml.brandnew.large", None)
    assert set(row.values()) == {"unknown"}
    assert list(row) == list(instances.row_of("ml.x.large", ec2_description()))
    description = ec2_description(**gpus(gpu(Manufacturer="AMD", Name="V520", Count=2)))
    assert instances.row_of("ml.x.large", description)["accelerator"] == {
        "kind": "other",
        "product": "AMD V520",
        "count": 2,
        "memory_gib": 22.35,
    }


def test_a_correction_changes_one_cell_of_a_row():
    device = {
        "Name": "Trainium2",
        "Count": 16,
        "MemoryInfo": {"SizeInMiB": 524_288},
        "CoreInfo": {"Count": 8, "Version": 3},
    }
    description = ec2_description(NeuronInfo={"NeuronDevices": [device]})
    assert instances.row_of("ml.trn9.48xlarge", description)["accelerator"]["memory_gib"] == 512
    assert instances.row_of("ml.trn2.48xlarge", description)["accelerator"] == {
        "kind": "neuron",
        "product": "AWS Trainium2",
        "count": 16,
        "memory_gib": 96,
        "neuron_generation": "NeuronCore-v3",
        "neuron_cores_per_device": 8,
    }


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            gpus(gpu(), gpu(Name="T4")),
            "ml.x.large has GPUs of several kinds or a part of one: model that first",
        ),
        ({"FpgaInfo": {}}, "ml.x.large has FpgaInfo: model that accelerator first"),
        (
            {"InstanceStorageInfo": {"NvmeSupport": "unsupported", "TotalSizeInGB": 80}},
            "ml.x.large has a local disk that is no NVMe: model that first",
        ),
    ],
)
def test_what_the_table_has_no_cell_for_is_not_dropped(parts, message):
    with pytest.raises(SourceError) as caught:
        instances.row_of("ml.x.large", ec2_description(**parts))
    assert str(caught.value) == message


def test_tables_have_one_entry_a_line_and_regions_whole_families():
    table = {"sources": ["a", "b"], "rows": {"x": {"n": [1, 2]}, "y": {}}, "none": []}
    assert render(table, levels=2) == (
        "{\n"
        '  "sources": [\n    "a",\n    "b"\n  ],\n'
        '  "rows": {\n    "x": {"n": [1, 2]},\n    "y": {}\n  },\n'
        '  "none": []\n'
        "}\n"
    )
    assert json.loads(render(table, levels=3)) == table
    families = regions.families_of(["ml.a.large", "ml.a.xlarge", "ml.b.large", "ml.c.large"])
    assert families == {"a": ["large", "xlarge"], "b": ["large"], "c": ["large"]}
    assert regions.compact(["ml.b.large", "ml.a.xlarge", "ml.not-ours.large"], families) == {
        "families": ["b"],
        "types": ["ml.a.xlarge"],
    }


def test_a_table_changes_if_more_than_its_date_does(tmp_path, capsys):
    path = tmp_path / "table.json"
    before = render({"as_of": "2026-01-02", "value": 1}, levels=1)
    path.write_text(before, "utf-8")
    assert run(path, lambda: {"value": 1}, levels=1) == 0
    assert path.read_text("utf-8") == before
    assert run(path, lambda: {"value": 2}, levels=1) == 0
    written = json.loads(path.read_text("utf-8"))
    assert written["as_of"] > "2026-01-02"
    assert written["value"] == 2
    path.write_text('{"as_of": "2026-01-02"}\n', encoding="utf-8")
    assert run(path, lambda: tables.package_version("no-such-package"), levels=1) == 1
    assert path.read_text("utf-8") == '{"as_of": "2026-01-02"}\n'
    assert capsys.readouterr().err == (
        "Not refreshed: table.json: the package no-such-package is not installed; install "
        "requirements-dev.txt.\n"
    )


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
