"""The training job that compiles for Neuron: its target, its image, what it is told."""

import json
from typing import Any

import pytest

from containers.neuron.compile.job import read_hyperparameters
from slipway.errors import UserError
from slipway.planning.compiling import CompilePlan
from slipway.planning.families import deployment_of
from slipway.planning.lock import Lock, LockedArtifact, LockedPart
from slipway.planning.plan import ImagePlan
from slipway.planning.resolve import resolve
from tests.support.deployments import digest_of
from tests.support.projects import DIGEST, LOCAL, PRODUCTION, model_config
from tests.unit.planning.models import LATENCY, NEURON, NEURONX

EMBEDDED = LOCAL.model_copy(update={"artifacts": "release"})
IMAGE = ImagePlan("210987654321", "eu-west-1", "slipway/neuron", "neuron1.13.1-sdk2.20.2-0123")
DIGESTS = {"tensorrt": "0123", "neuron": "0123"}


def config(instance: str, **serving: Any) -> Any:
    return model_config(
        model={"family": "bert", "parameters": 109_500_000},
        serving=NEURON | serving,
        endpoint={"instances": [instance]},
        artifacts={
            "release": None,
            "weights": {"source": "path", "path": "build/bert"},
            "compile": {"instance": "ml.c5.4xlarge", "volume_size_gb": 50},
        },
    )


def job(model: Any, environment: Any = PRODUCTION) -> CompilePlan:
    found = deployment_of(model, environment).compile_plan(IMAGE)
    assert isinstance(found, CompilePlan)
    return found


def test_it_runs_on_a_cpu_type_in_the_compilers_image():
    found = job(config("ml.inf1.xlarge", batch_size=6))
    assert found == CompilePlan(
        target="inf1",
        compiler="Neuron SDK 2.20.2",
        image=ImagePlan(
            "210987654321", "eu-west-1", "slipway/neuron", "neuron1.13.1-sdk2.20.2-0123-compiler"
        ),
        instance_type="ml.c5.4xlarge",
        volume_size_gb=50,
        max_runtime_seconds=7200,
        hyperparameters={
            "batch_size": "6",
            "dtype": "bf16",
            "pipeline_cores": "1",
            "sequence_lengths": "128",
            "target": "inf1",
            "task": "question-answering",
        },
    )


@pytest.mark.parametrize(
    ("instance", "serving", "expected"),
    [
        ("ml.inf1.6xlarge", LATENCY, {"target": "inf1", "pipeline_cores": "16"}),
        ("ml.inf1.24xlarge", LATENCY, {"target": "inf1", "pipeline_cores": "20"}),
        (
            "ml.inf2.xlarge",
            NEURONX | {"batch_size": 8, "dtype": "fp16"},
            {"target": "inf2", "batch_size": "8", "dtype": "fp16", "pipeline_cores": "1"},
        ),
        ("ml.trn1.32xlarge", NEURONX, {"target": "trn1"}),
        # It differs in its network alone.
        ("ml.trn1n.32xlarge", NEURONX, {"target": "trn1"}),
        (
            "ml.inf2.xlarge",
            NEURONX | {"sequence_lengths": [32, 64, 128]},
            {"sequence_lengths": "32,64,128"},
        ),
        ("ml.inf2.xlarge", NEURONX | LATENCY, {"batch_size": "1", "pipeline_cores": "1"}),
    ],
)
def test_it_is_told_what_the_plan_says(instance, serving, expected):
    assert job(config(instance, **serving)).hyperparameters.items() >= expected.items()


def test_on_the_embedded_aws_it_is_for_the_processor():
    found = job(config("ml.inf1.6xlarge", **LATENCY), EMBEDDED)
    assert (found.target, found.compiler) == ("cpu", "onnx")
    assert found.hyperparameters == {
        "batch_size": "1",
        "dtype": "fp32",
        "pipeline_cores": "1",
        "sequence_lengths": "128",
        "target": "cpu",
        "task": "question-answering",
    }


@pytest.mark.parametrize("environment", [PRODUCTION, EMBEDDED], ids=["account", "embedded"])
@pytest.mark.parametrize(
    ("instance", "serving"),
    [
        ("ml.inf1.6xlarge", LATENCY),
        ("ml.inf1.xlarge", {"dtype": "fp16"}),
        ("ml.inf2.xlarge", NEURONX | {"dtype": "fp32", "sequence_lengths": [8, 128]}),
        ("ml.trn1.2xlarge", NEURONX),
    ],
)
def test_the_container_takes_what_it_is_told(tmp_path, environment, instance, serving):
    told = job(config(instance, **serving), environment).hyperparameters
    (tmp_path / "hyperparameters.json").write_text(json.dumps(dict(told)))
    read, problems = read_hyperparameters(tmp_path)
    assert problems == []
    assert read is not None
    assert (read.target, str(read.batch_size)) == (told["target"], told["batch_size"])


def test_a_release_of_its_family_is_deployed_and_no_other():
    model = config("ml.inf2.xlarge", **NEURONX)
    part = LockedPart(digest=DIGEST, size_bytes=1, file_count=1, source="job", target="inf2")
    locked = LockedArtifact(inputs_digest=digest_of(model, "release"), weights=part, compiled=part)
    lock = Lock(environments={PRODUCTION.name: locked})
    found = resolve(deployment_of(model, PRODUCTION), lock, DIGESTS)
    assert (found.artifact.digest, found.artifact.target) == (DIGEST, "inf2")
    compiled = part.model_copy(update={"target": "inf1"})
    other = Lock(environments={PRODUCTION.name: locked.model_copy(update={"compiled": compiled})})
    with pytest.raises(UserError, match=r"compiled for inf1, and ml\.inf2\.xlarge needs inf2"):
        resolve(deployment_of(model, PRODUCTION), other, DIGESTS)
    # A published model without a Neuron device gets a report.
    changed = deployment_of(config("ml.c5.2xlarge", **NEURONX), PRODUCTION)
    with pytest.raises(UserError) as caught:
        resolve(changed, lock, DIGESTS)
    assert "ml.c5.2xlarge has no accelerator" in caught.value.problems[0].message


def test_other_buckets_are_another_artifact():
    one, two, named = (
        digest_of(config("ml.inf2.xlarge", **NEURONX, **buckets), "release")
        for buckets in ({}, {"sequence_lengths": [64, 128]}, {"sequence_lengths": [128]})
    )
    # `sequence_length` alone is a graph of 128 tokens too.
    assert two != one == named
