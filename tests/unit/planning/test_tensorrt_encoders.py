"""Encoders in the TensorRT container: what its settings must be, and what follows from them."""

from typing import Any

import pytest

from slipway.planning.compiling import CPU
from slipway.planning.families import deployment_of
from slipway.planning.families.tensorrt import rules
from slipway.planning.families.tensorrt.deployment import TensorRT
from tests.support.projects import LOCAL, PRODUCTION, model_config
from tests.unit.planning.rule_findings import findings, on, only

BERT = {"family": "bert", "parameters": 108_893_186, "layers": 12, "hidden_size": 768,
        "attention_heads": 12}  # fmt: skip
SERVING = {"container": "tensorrt", "task": "question-answering", "sequence_length": 128}
PROCESSOR = "ml.c7i.2xlarge"


def tensorrt(environment: Any = PRODUCTION, **sections: Any) -> TensorRT:
    config = model_config(**{"model": BERT, "serving": SERVING} | sections)
    deployment = deployment_of(config, environment)
    assert isinstance(deployment, TensorRT)
    return deployment


def test_settings_fit_family() -> None:
    found = findings(rules.settings_fit_family, model=BERT, serving={"container": "tensorrt"})
    assert [(field, message) for field, message, _ in found] == [
        ("serving", "`task` is missing, which an encoder needs"),
        ("serving", "`sequence_length` is missing, which an encoder needs"),
    ]
    assert findings(rules.settings_fit_family, model=BERT, serving=SERVING) == []
    more = {"max_batch_size": 4, "max_new_tokens": 3}
    assert findings(rules.settings_fit_family, model=BERT, serving=SERVING | more) == [
        (
            "serving.max_batch_size",
            "`max_batch_size` has no effect: a model of the family bert generates no text",
            "Write `batch_size` instead.",
        ),
        (
            "serving.max_new_tokens",
            "`max_new_tokens` has no effect: a model of the family bert generates no text",
            "Remove it.",
        ),
    ]
    found = findings(rules.settings_fit_family, serving=SERVING | {"batch_size": 2})
    assert [field for field, _, _ in found] == [
        *["serving"] * 3, "serving.task", "serving.sequence_length", "serving.batch_size",
    ]  # fmt: skip
    assert found[0][1] == "`max_input_tokens` is missing, which gpt2 needs"


def test_the_container_is_told_what_it_serves() -> None:
    assert tensorrt(model={"family": "other", "parameters": 1000}).serves_encoder
    generation = {"container": "tensorrt", "max_input_tokens": 8, "max_new_tokens": 8,
                  "default_new_tokens": 8}  # fmt: skip
    other = tensorrt(model={"family": "other", "parameters": 1000}, serving=generation)
    assert not other.serves_encoder
    told = tensorrt(serving=SERVING | {"batch_size": 16}).container_environment()
    assert told == {
        "SLIPWAY_DTYPE": "fp16",
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "5",
        "SLIPWAY_MAX_BATCH_SIZE": "16",
        "SLIPWAY_MAX_QUEUE_LENGTH": "256",
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "55",
        "SLIPWAY_SEQUENCE_LENGTH": "128",
        "SLIPWAY_TASK": "question-answering",
    }


@pytest.mark.parametrize(("name", "target"), [("ml.g5.xlarge", "sm86"), (PROCESSOR, CPU)])
def test_what_computes_follows_from_the_types(name: str, target: str) -> None:
    found = tensorrt(endpoint=on(name))
    assert (found.compile_target, found.builds_engine) == (target, target != CPU)
    assert found.cached_tokens == 0
    assert found.settings_in_artifact["dtype"] == ("fp32" if target == CPU else "fp16")
    sections = {"model": BERT, "serving": SERVING, "endpoint": on(name)}
    assert findings(rules.needs_nvidia_gpu, PRODUCTION, **sections) == []


def test_types_of_both_kinds_need_two_artifacts() -> None:
    endpoint = {"instances": ["ml.g5.xlarge", PROCESSOR]}
    [(field, message, _)] = findings(
        rules.needs_nvidia_gpu, LOCAL, model=BERT, serving=SERVING, endpoint=endpoint
    )
    assert field == "endpoint.instances[1]"
    assert message == (
        f"{PROCESSOR} has no accelerator; the container `tensorrt` needs an NVIDIA GPU"
    )


def test_an_engine_does_not_run_on_a_processor() -> None:
    artifacts = {"release": {"path": "build/bert", "target": "sm86"}}
    sections = {
        "model": BERT,
        "serving": SERVING,
        "artifacts": artifacts,
        "endpoint": on(PROCESSOR),
    }
    assert only(findings(rules.cpu_runs_graph, PRODUCTION, **sections)) == (
        "artifacts.release.target",
        f"the engine was built for sm86, but {PROCESSOR} has no GPU",
        "Compile the model for cpu, or choose an instance type with sm86.",
    )


def test_batches_and_buckets_are_held_to_neurons_rules() -> None:
    serving = SERVING | {"sequence_lengths": [64, 32], "batch_size": 8, "max_queue_length": 4}
    found = findings(rules.encoder_batches_fit, model=BERT, serving=serving)
    assert [field for field, _, _ in found] == [
        "serving.max_queue_length",
        "serving.sequence_lengths",
    ]
