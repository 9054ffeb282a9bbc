"""Models in the TensorRT container: what its version, its types and its family come to."""

from typing import Any, get_args

import pytest

from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.facts.tensorrt.releases import newest_release_for, tensorrt_releases
from slipway.planning.compiling import CPU
from slipway.planning.families import deployment_of
from slipway.planning.families.tensorrt.deployment import TensorRT
from tests.support.projects import PRODUCTION, model_config

BERT = {"family": "bert", "parameters": 108_893_186, "layers": 12, "hidden_size": 768,
        "attention_heads": 12}  # fmt: skip
ENCODER = {"container": "tensorrt", "task": "question-answering", "sequence_length": 128}
GENERATION = {"container": "tensorrt", "max_input_tokens": 8, "max_new_tokens": 8,
              "default_new_tokens": 8}  # fmt: skip
OTHER = {"family": "other", "parameters": 1000}


def tensorrt(**sections: Any) -> TensorRT:
    config = model_config(**{"model": BERT, "serving": ENCODER} | sections)
    deployment = deployment_of(config, PRODUCTION)
    assert isinstance(deployment, TensorRT)
    return deployment


def test_the_field_takes_the_releases_there_are():
    annotation = TensorRTServing.model_fields["tensorrt_version"].annotation
    assert tuple(tensorrt_releases()) in [get_args(part) for part in get_args(annotation)]


@pytest.mark.parametrize(
    ("capabilities", "version"),
    [
        ({"sm70"}, "10.4"),
        ({"sm75"}, "10.13"),
        ({"sm86", "sm90"}, "10.13"),
        (set(), "10.13"),
        # No release runs on it, which a rule tells.
        ({"sm37"}, "10.13"),
    ],
)
def test_the_newest_release_that_fits_is_taken(capabilities, version):
    assert newest_release_for(frozenset(capabilities)).version == version


def test_the_container_is_told_what_it_serves() -> None:
    assert tensorrt(model=OTHER).serves_encoder
    assert not tensorrt(model=OTHER, serving=GENERATION).serves_encoder
    serving = ENCODER | {"batch_size": 16, "request_timeout_seconds": 20}
    told = tensorrt(serving=serving).container_environment()
    assert told == {
        "SLIPWAY_DTYPE": "fp16",
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "5",
        "SLIPWAY_MAX_BATCH_SIZE": "16",
        "SLIPWAY_MAX_QUEUE_LENGTH": "256",
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "20",
        "SLIPWAY_SEQUENCE_LENGTH": "128",
        "SLIPWAY_TASK": "question-answering",
    }


@pytest.mark.parametrize(
    ("instance", "sections", "target", "dtype"),
    [
        ("ml.g5.xlarge", {}, "sm86", "fp16"),
        ("ml.c7i.2xlarge", {}, CPU, "fp32"),
        ("ml.c7i.2xlarge", {"serving": ENCODER | {"dtype": "fp32"}}, CPU, "fp32"),
        ("ml.c7i.2xlarge", {"serving": ENCODER | {"dtype": "int8"}}, CPU, "int8"),
        *(
            (
                "ml.c7i.2xlarge",
                {"model": {"family": "gpt2"}, "serving": GENERATION | {"dtype": dtype}},
                CPU,
                dtype,
            )
            for dtype in ("int8", "fp32")
        ),
    ],
)
def test_what_computes_follows_from_the_types(instance, sections, target, dtype) -> None:
    found = tensorrt(endpoint={"instances": [instance]}, **sections)
    assert (found.compile_target, found.builds_engine) == (target, target != CPU)
    assert found.settings_in_artifact["dtype"] == dtype
    if found.serves_encoder:
        assert found.cached_tokens == 0
