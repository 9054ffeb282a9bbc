"""Models on NeuronCores: the published layouts, the formula, what the container is told."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from containers.serving.settings import EnvironmentReader, ServingSettings
from slipway.config.sections.base import UnknownValueError
from slipway.facts.instances import instance_types
from slipway.planning.families import deployment_of
from slipway.planning.families.neuron.hardware import aws_neuron_image
from slipway.planning.families.neuron.placement import pipeline_depth
from tests.support.deployments import neuron, on_instance
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.models import LATENCY, NEURON, NEURONX

BERT_BASE = 109_500_000
INF1 = ("ml.inf1.xlarge", "ml.inf1.2xlarge", "ml.inf1.6xlarge", "ml.inf1.24xlarge")


def config(weights: int = BERT_BASE, **serving: Any):
    return model_config(model={"family": "bert", "parameters": weights}, serving=NEURON | serving)


def on(instance: str, weights: int = BERT_BASE, **serving: Any):
    return on_instance(neuron(config(weights, **serving)), instance_types()[instance])


def placed(instance: str, weights: int = BERT_BASE, **serving: Any):
    placement = neuron(config(weights, **serving)).place(instance_types()[instance])
    assert placement is not None
    return placement


def numbers(instance: str, weights: int = BERT_BASE, **serving: Any) -> tuple[int, int, int]:
    """Returns cores of a pipeline, workers, cores of a worker."""
    placement = placed(instance, weights, **serving)
    return placement.pipeline_cores, placement.workers, placement.cores_per_worker


class TestPublished:
    """The table of pipeline cores and the set-ups of the published figures (facts: neuron)."""

    @pytest.mark.parametrize(
        ("weights", "cores"),
        [
            (9_999_999, 0),
            (66_000_000, 12),
            (BERT_BASE, 20),
            (110_000_000, 24),
            (335_000_000, 68),
        ],
    )
    def test_the_formula(self, weights, cores):
        assert pipeline_depth(weights) == cores

    def test_bert_base_in_a_pipeline_takes_all_of_an_inf1_6xlarge(self):
        found = placed("ml.inf1.6xlarge", **LATENCY)
        assert (found.pipeline_cores, found.workers, found.cores_per_worker) == (16, 1, 16)
        assert (found.batch_size, found.in_flight_requests, found.idle_cores) == (1, 12, 0)
        assert found.formula == (
            "4 x round(109,500,000 weights / 20,000,000) = 20 NeuronCores, cut to the 16 that "
            "ml.inf1.6xlarge has; 1 worker with a pipeline of 16 NeuronCores each on the 16 of "
            "ml.inf1.6xlarge."
        )

    @pytest.mark.parametrize(
        ("instance", "workers"), [("ml.inf1.6xlarge", 16), ("ml.inf1.xlarge", 4)]
    )
    def test_bert_base_data_parallel_has_a_copy_on_every_core(self, instance, workers):
        found = placed(instance, batch_size=6)
        assert (found.pipeline_cores, found.workers, found.cores_per_worker) == (1, workers, 1)
        assert (found.batch_size, found.in_flight_requests) == (6, 6 * workers)
        assert found.formula == (
            f"`objective: throughput` is data parallel with batches of 6: {workers} workers with 1 "
            f"NeuronCore each on the {workers} of {instance}."
        )

    @pytest.mark.parametrize(
        ("batch_size", "objective"), [(8, "throughput"), (1, "throughput"), (1, "latency")]
    )
    def test_bert_base_on_inf2_xlarge(self, batch_size, objective):
        serving = NEURONX | {"batch_size": batch_size, "objective": objective}
        found = placed("ml.inf2.xlarge", **serving)
        assert (found.pipeline_cores, found.workers, found.cores_per_worker) == (1, 2, 1)
        assert (found.batch_size, found.in_flight_requests) == (batch_size, 2 * batch_size)


class TestPipelines:
    @pytest.mark.parametrize(
        ("weights", "steps"),
        [
            (10_000_000, 0),
            (10_000_001, 1),
            (30_000_000, 2),
            (50_000_000, 2),
            (70_000_000, 4),
            (90_000_000, 4),
        ],
    )
    def test_halves_are_rounded_to_the_even_number(self, weights, steps):
        assert pipeline_depth(weights) == 4 * steps

    @pytest.mark.parametrize(
        ("weights", "instance", "depth", "workers", "idle"),
        [
            (BERT_BASE, "ml.inf1.xlarge", 4, 1, 0),
            (BERT_BASE, "ml.inf1.24xlarge", 20, 3, 4),
            (110_000_000, "ml.inf1.24xlarge", 24, 2, 16),
            (66_000_000, "ml.inf1.6xlarge", 12, 1, 4),
            (66_000_000, "ml.inf1.24xlarge", 12, 5, 4),
            (335_000_000, "ml.inf1.24xlarge", 64, 1, 0),
            (9_000_000, "ml.inf1.xlarge", 4, 1, 0),
            (9_000_000, "ml.inf1.6xlarge", 4, 4, 0),
        ],
    )
    def test_as_many_as_the_cores_carry(self, weights, instance, depth, workers, idle):
        assert numbers(instance, weights, **LATENCY) == (depth, workers, depth)
        assert placed(instance, weights, **LATENCY).idle_cores == idle

    def test_the_formula_says_what_limited_it(self):
        small = placed("ml.inf1.6xlarge", 9_000_000, **LATENCY).formula
        assert small == (
            "4 x round(9,000,000 weights / 20,000,000) = 0 NeuronCores, raised to the least, 4; 4 "
            "workers with a pipeline of 4 NeuronCores each on the 16 of ml.inf1.6xlarge."
        )
        whole = placed("ml.inf1.24xlarge", 66_000_000, **LATENCY).formula
        assert whole == (
            "4 x round(66,000,000 weights / 20,000,000) = 12 NeuronCores; 5 workers with a "
            "pipeline of 12 NeuronCores each on the 64 of ml.inf1.24xlarge."
        )
        # Every pipeline wants its twelve batches.
        assert placed("ml.inf1.24xlarge", 66_000_000, **LATENCY).in_flight_requests == 5 * 12
        batches = placed("ml.inf1.6xlarge", batch_size=2, **LATENCY)
        assert (batches.batch_size, batches.in_flight_requests) == (2, 24)
        # Later chips have none.
        found = placed("ml.inf2.xlarge", **NEURONX | LATENCY | {"batch_size": 6})
        assert (found.pipeline_cores, found.workers, found.batch_size) == (1, 2, 1)
        assert found.formula == (
            "`objective: latency` on NeuronCore-v2, which has no NeuronCore Pipeline, is data "
            "parallel with batches of 1: 2 workers with 1 NeuronCore each on the 2 of "
            "ml.inf2.xlarge."
        )
        assert numbers("ml.trn1.32xlarge", **NEURONX | LATENCY) == (1, 32, 1)


def test_the_config_is_taken_as_it_is():
    assert numbers("ml.inf1.6xlarge", pipeline_cores=6, **LATENCY) == (6, 2, 6)
    assert numbers("ml.inf1.6xlarge", pipeline_cores=32, **LATENCY) == (32, 1, 32)
    formula = placed("ml.inf1.6xlarge", pipeline_cores=6, **LATENCY).formula
    assert formula == (
        "`pipeline_cores: 6`; 2 workers with a pipeline of 6 NeuronCores each on the 16 of "
        "ml.inf1.6xlarge."
    )
    # A pipeline of one core is none.
    found = placed("ml.inf1.xlarge", pipeline_cores=1, batch_size=3, **LATENCY)
    assert (found.pipeline_cores, found.workers, found.cores_per_worker) == (1, 4, 1)
    assert found.formula == (
        "`pipeline_cores: 1` is data parallel with batches of 3: 4 workers with 1 NeuronCore "
        "each on the 4 of ml.inf1.xlarge."
    )
    # The workers of the config are taken as they are.
    assert numbers("ml.inf1.xlarge", workers=3) == (1, 3, 1)
    assert placed("ml.inf1.xlarge", workers=3).idle_cores == 1
    assert numbers("ml.inf1.6xlarge", workers=2, **LATENCY) == (16, 2, 16)
    assert placed("ml.inf1.6xlarge", workers=2, **LATENCY).idle_cores == -16
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        config(pipeline_cores=0)


@given(
    weights=st.integers(1, 10**12),
    instance=st.sampled_from(
        [
            name
            for name, facts in instance_types().items()
            if facts.accelerator and facts.accelerator.neuron_cores
        ]
    ),
    objective=st.sampled_from(["throughput", "latency"]),
)
def test_what_is_worked_out_fits_whatever_the_model(weights, instance, objective):
    found = placed(instance, weights, objective=objective)
    assert found.workers >= 1
    assert 0 <= found.idle_cores < found.cores_per_worker
    assert found.cores_per_worker == found.pipeline_cores
    if found.pipeline_cores > 1:
        assert instance in INF1
        assert 4 <= found.pipeline_cores <= found.cores


def test_other_containers_and_types_have_none():
    types = instance_types()
    assert deployment_of(model_config(), LOCAL).neuron_placement is None
    assert neuron(config()).place(types["ml.g4dn.xlarge"]) is None
    assert neuron(config()).place(types["ml.c5.xlarge"]) is None
    # Cores that no source gives are not guessed.
    inf1 = instance_types()["ml.inf1.xlarge"]
    assert inf1.accelerator is not None
    vague = dataclasses.replace(inf1.accelerator, neuron_cores_per_device=None)
    assert neuron(config()).place(dataclasses.replace(inf1, accelerator=vague)) is None
    with pytest.raises(
        UnknownValueError, match=r"tiny has no placement on the NeuronCores of ml\.c5\.xlarge"
    ):
        on("ml.c5.xlarge").container_environment()


class TestEnvironment:
    def test_of_data_parallel_workers(self):
        serving = NEURONX | {
            "batch_size": 8, "task": "embeddings", "dtype": "fp32", "request_timeout_seconds": 40,
        }  # fmt: skip
        assert on("ml.inf2.xlarge", **serving).container_environment() == {
            "NEURON_RT_NUM_CORES": "1",
            "SAGEMAKER_MODEL_SERVER_WORKERS": "2",
            "SLIPWAY_DTYPE": "fp32",
            "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "5",
            "SLIPWAY_MAX_BATCH_SIZE": "8",
            "SLIPWAY_MAX_QUEUE_LENGTH": "256",
            "SLIPWAY_PIPELINE_CORES": "1",
            "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "40",
            "SLIPWAY_SEQUENCE_LENGTH": "128",
            "SLIPWAY_TASK": "embeddings",
            "SLIPWAY_WORKERS": "2",
        }

    def test_of_pipelines(self):
        serving = LATENCY | {
            "max_batch_delay_milliseconds": 2, "max_queue_length": 64,
            "request_timeout_seconds": 9, "sequence_length": 384,
        }  # fmt: skip
        told = on("ml.inf1.24xlarge", 66_000_000, **serving).container_environment()
        assert told == {
            "NEURON_RT_NUM_CORES": "12",
            "SAGEMAKER_MODEL_SERVER_WORKERS": "5",
            "SLIPWAY_DTYPE": "bf16",
            "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "2",
            "SLIPWAY_MAX_BATCH_SIZE": "1",
            "SLIPWAY_MAX_QUEUE_LENGTH": "64",
            "SLIPWAY_PIPELINE_CORES": "12",
            "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "9",
            "SLIPWAY_SEQUENCE_LENGTH": "384",
            "SLIPWAY_TASK": "question-answering",
            "SLIPWAY_WORKERS": "5",
        }

    def test_the_serving_core_reads_its_part(self):
        serving = {"batch_size": 6, "max_queue_length": 24, "request_timeout_seconds": 9}
        told = on("ml.inf1.xlarge", **serving).container_environment()
        reader = EnvironmentReader(told)
        settings = ServingSettings.read(reader)
        assert settings.max_batch_size == 6
        assert settings.max_batch_delay_milliseconds == 5
        assert settings.max_queue_length == 24
        assert settings.request_timeout_seconds == 9
        # Latency on later chips is a batch of one.
        serving = NEURONX | LATENCY | {"batch_size": 6}
        told = on("ml.inf2.xlarge", **serving).container_environment()
        assert told["SLIPWAY_MAX_BATCH_SIZE"] == "1"


class TestAwsImages:
    @pytest.mark.parametrize(
        ("path", "accelerator"),
        [
            ("pytorch-inference-neuron:1.13.1-neuron-py310-sdk2.20.2-ubuntu20.04", "neuron"),
            ("pytorch-inference-neuronx@sha256:" + "a" * 64, "neuronx"),
            ("pytorch-inference-neuron-mine:1", None),
            ("sagemaker-tritonserver:25.09-py3", None),
            # DJL's repository has images for GPUs too.
            ("djl-inference:0.29.0-neuronx-sdk2.19.1", None),
        ],
    )
    def test_are_known_by_their_repository(self, path, accelerator):
        found = aws_neuron_image(f"763104351884.dkr.ecr.us-east-1.amazonaws.com/{path}")
        assert (found.accelerator if found else None) == accelerator

    def test_are_in_awss_registry_of_the_region(self):
        path = "pytorch-inference-neuronx:1"
        registry = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
        assert aws_neuron_image(f"{registry}/{path}") is None
        nowhere = "763104351884.dkr.ecr.eu-nowhere-1.amazonaws.com"
        assert aws_neuron_image(f"{nowhere}/{path}") is None
