"""The instance table: every name of hosting's, plausible cells, and what other sources say."""

import importlib.util
import json
import time
import timeit
from pathlib import Path

import botocore.session
import pytest

from slipway.facts.instances import Accelerator, InstanceFacts, instance_facts, instance_types
from slipway.facts.tables import read_table

TYPES = instance_types()
BOTOCORE = botocore.session.Session()
HOSTING = BOTOCORE.get_service_model("sagemaker").shape_for("ProductionVariantInstanceType").enum

# SageMaker refuses VolumeSizeInGB for these families; besides those whose names end in d.
REFUSE_A_VOLUME = (
    "g4dn", "g5", "g6", "g6e", "g7", "g7e", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300",
    "p6e-gb200", "trn1", "trn1n", "trn2", "dl1",
)  # fmt: skip

# AWS Neuron's documents: devices, NeuronCores, vCPUs, GiB of memory, GiB of all devices.
NEURON = {
    "ml.inf1.xlarge": (1, 4, 4, 8, 8),
    "ml.inf1.2xlarge": (1, 4, 8, 16, 8),
    "ml.inf1.6xlarge": (4, 16, 24, 48, 32),
    "ml.inf1.24xlarge": (16, 64, 96, 192, 128),
    "ml.inf2.xlarge": (1, 2, 4, 16, 32),
    "ml.inf2.8xlarge": (1, 2, 32, 128, 32),
    "ml.inf2.24xlarge": (6, 12, 96, 384, 192),
    "ml.inf2.48xlarge": (12, 24, 192, 768, 384),
    "ml.trn1.2xlarge": (1, 2, 8, 32, 32),
    "ml.trn1.32xlarge": (16, 32, 128, 512, 512),
    "ml.trn1n.32xlarge": (16, 32, 128, 512, 512),
    "ml.trn2.48xlarge": (16, 128, 192, 2048, 1536),
}

# The SDK's GPUs, and MiB of all of them.
SDK = Path(str(importlib.util.find_spec("sagemaker.core").origin)).parent
GPUS = json.loads((SDK / "image_uri_config/instance_gpu_info.json").read_text("utf-8"))["us-east-1"]


def test_every_name_that_hosting_accepts_is_there_and_is_an_ec2_type():
    assert list(TYPES) == sorted(HOSTING)
    assert len(TYPES) == 277
    ec2 = set(BOTOCORE.get_service_model("ec2").shape_for("InstanceType").enum)
    assert {name.removeprefix("ml.") for name in TYPES} <= ec2


@pytest.mark.parametrize("facts", TYPES.values(), ids=lambda facts: facts.name)
def test_cells_are_plausible(facts):
    assert 1 <= facts.vcpus <= 192
    assert 1.6 < facts.memory_gib / facts.vcpus <= 21.4
    # AWS's processors are those with a g after the generation.
    _, family, _ = facts.name.split(".")
    graviton = family[2:3] == "g" or family == "p6e-gb200"
    assert facts.architecture == ("arm64" if graviton else "x86_64")
    assert facts.accelerator_known
    # SageMaker refuses a volume where there is a local disk.
    refused = family in REFUSE_A_VOLUME or family.endswith("d")
    assert (facts.local_nvme_gb > 0) == refused
    accelerated = family.startswith(("p", "g", "inf", "trn", "dl"))
    accelerator = facts.accelerator
    assert (accelerator is not None) == accelerated
    if accelerator is None:
        return
    kinds = {"p": "gpu", "g": "gpu", "i": "neuron", "t": "neuron", "d": "other"}
    assert accelerator.kind == kinds[family[0]]
    assert 1 <= accelerator.count <= 16
    assert accelerator.memory_gib is None or 8 <= accelerator.memory_gib <= 300
    capability = accelerator.compute_capability
    assert accelerator.is_nvidia_gpu == (accelerator.kind == "gpu") == (capability is not None)
    if capability is not None:
        assert 37 <= int(capability.removeprefix("sm")) <= 121
    is_neuron = accelerator.kind == "neuron"
    assert (accelerator.neuron_generation is not None) == is_neuron
    assert (accelerator.neuron_cores is not None) == is_neuron


def test_neuron_devices_are_those_of_the_neuron_documents():
    known = {
        name: (
            facts.accelerator.count,
            facts.accelerator.neuron_cores,
            facts.vcpus,
            facts.memory_gib,
            facts.accelerator.memory_gib * facts.accelerator.count,
        )
        for name, facts in TYPES.items()
        if "AWS" in str(facts.accelerator)
    }
    assert known == NEURON


@pytest.mark.parametrize("name", sorted(GPUS.keys() & TYPES.keys()))
def test_gpus_are_those_of_the_sagemaker_sdk(name):
    row, accelerator = GPUS[name], TYPES[name].accelerator
    assert accelerator.count == row["Count"]
    # Its rows of smaller g5 types have the nominal memory of their GPUs.
    if not name.startswith("ml.g5.") or name == "ml.g5.48xlarge":
        total_mib = row["TotalGpuMemoryInMiB"]
        assert accelerator.memory_gib == round(total_mib / accelerator.count / 1024, 2)


def test_rows_of_each_kind():
    assert TYPES["ml.g5.12xlarge"] == InstanceFacts(
        name="ml.g5.12xlarge",
        vcpus=48,
        memory_gib=192,
        architecture="x86_64",
        accelerator=Accelerator(
            kind="gpu", product="NVIDIA A10G", count=4, memory_gib=22.35, compute_capability="sm86"
        ),
        accelerator_known=True,
        local_nvme_gb=3800,
    )
    assert TYPES["ml.inf2.24xlarge"].accelerator == Accelerator(
        kind="neuron",
        product="AWS Inferentia2",
        count=6,
        memory_gib=32,
        neuron_generation="NeuronCore-v2",
        neuron_cores_per_device=2,
    )
    assert TYPES["ml.dl1.24xlarge"].accelerator == Accelerator(
        kind="other", product="Habana Gaudi HL-205", count=8, memory_gib=32
    )
    assert TYPES["ml.c4.large"] == InstanceFacts(
        name="ml.c4.large",
        vcpus=2,
        memory_gib=3.75,
        architecture="x86_64",
        accelerator=None,
        accelerator_known=True,
        local_nvme_gb=0,
    )


def test_what_no_source_gives_is_none_and_the_table_cannot_be_changed():
    cells = ("vcpus", "memory_gib", "architecture", "accelerator", "local_nvme_gb")
    assert instance_facts("ml.x", dict.fromkeys(cells, "unknown")) == InstanceFacts(
        name="ml.x",
        vcpus=None,
        memory_gib=None,
        architecture=None,
        accelerator=None,
        accelerator_known=False,
        local_nvme_gb=None,
    )
    assert instance_facts("ml.x", dict.fromkeys(cells)).accelerator_known
    assert TYPES["ml.p6e-gb200.36xlarge"].accelerator.memory_gib is None
    sources = read_table("instances.json")["sources"]
    assert len(sources) >= 2
    assert all(len(source) > 20 for source in sources)
    with pytest.raises(TypeError):
        TYPES["ml.mine"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        TYPES["ml.g5.xlarge"].vcpus = 5  # type: ignore[misc]


def test_reading_it_is_a_matter_of_milliseconds():
    read = instance_types.__wrapped__
    # The fastest of many, on the process's own clock: the machine has other things to do. About 1.3
    # ms on a quiet one; the bound is for a mistake, such as reading the table once for each type.
    assert min(timeit.repeat(read, timer=time.process_time, number=1, repeat=50)) < 0.02
