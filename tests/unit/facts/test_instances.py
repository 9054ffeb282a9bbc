"""The instance table: SageMaker's own names, plausible numbers, a source and a date."""

from __future__ import annotations

import datetime
import json
from importlib import resources

import botocore.session
import pytest

from slipway.facts.instances import InstanceFacts, instance_types

TABLE = json.loads(resources.files("slipway.facts").joinpath("instances.json").read_text("utf-8"))


def test_every_type_is_one_that_hosting_accepts():
    model = botocore.session.Session().get_service_model("sagemaker")
    accepted = model.shape_for("ProductionVariantInstanceType").enum
    assert set(instance_types()) <= set(accepted)


def test_the_table_says_where_it_is_from_and_of_when():
    assert len(TABLE["sources"]) >= 2
    assert all(len(source) > 20 for source in TABLE["sources"])
    assert datetime.date.fromisoformat(TABLE["as_of"]).year >= 2026


@pytest.mark.parametrize("facts", instance_types().values(), ids=lambda facts: facts.name)
def test_numbers_are_plausible(facts: InstanceFacts):
    assert facts.vcpus >= 4
    assert 2 <= facts.memory_gib / facts.vcpus <= 8
    assert facts.accelerator_count in (1, 4, 8)
    assert facts.accelerator_memory_gib >= 16
    assert facts.compute_capability.removeprefix("sm").isdigit()
    assert facts.accelerator.startswith("NVIDIA ")
    # Only P3 keeps its data on EBS.
    assert (facts.local_nvme_gb == 0) == facts.name.startswith("ml.p3.")


def test_a_row_takes_its_familys_accelerator():
    assert instance_types()["ml.g5.12xlarge"] == InstanceFacts(
        name="ml.g5.12xlarge",
        vcpus=48,
        memory_gib=192,
        accelerator="NVIDIA A10G",
        accelerator_count=4,
        accelerator_memory_gib=24,
        compute_capability="sm86",
        local_nvme_gb=3800,
    )


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        instance_types()["ml.mine"] = None  # type: ignore[index]


def test_every_accelerator_family_is_used():
    assert set(TABLE["accelerators"]) == {name.split(".")[1] for name in TABLE["instances"]}
