"""What a model takes of a GPU's memory: the parts, what cannot fit, and what nearly does not."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.facts.instances import instance_types
from slipway.planning.advice import Subject, memory_nearly_full
from slipway.planning.memory import estimate
from slipway.planning.plan import ArtifactPlan
from slipway.planning.rules.hardware import weights_fit_accelerator
from slipway.planning.rules.situation import situation_of
from tests.unit.planning.test_rules import findings, on
from tests.unit.projects import DIGEST, LOCAL, model_config

# GPT-2 XL: 48 layers, 25 heads of 64.
XL = {
    "parameters": 1_557_611_200, "layers": 48, "hidden_size": 1600, "attention_heads": 25,
}  # fmt: skip


def memory(instance: str = "ml.g4dn.xlarge", **sections: Any):
    return estimate(model_config(**sections), instance_types()[instance])


def test_the_parts_of_gpt2_xl():
    found = memory(model=XL, serving={"max_batch_size": 10})
    assert found is not None
    assert found.accelerator == "NVIDIA T4"
    # Two bytes for each weight.
    assert found.weights_gib == pytest.approx(2.901, abs=0.001)
    # A key and a value of 1600 numbers in 48 layers, for 10 x (64 + 42) tokens.
    assert found.cache_gib == pytest.approx(2 * 48 * 1600 * 1060 * 2 / 2**30, abs=0.001)
    assert found.total_gib == found.weights_gib + found.cache_gib + found.overhead_gib


def test_precision_and_fewer_heads_count():
    single = memory(model=XL, serving={"dtype": "fp32"})
    half = memory(model=XL)
    assert single.weights_gib == pytest.approx(2 * half.weights_gib, abs=0.002)
    grouped = memory(model=XL | {"key_value_heads": 5})
    assert grouped.cache_gib == pytest.approx(half.cache_gib / 5, abs=0.001)
    wide = memory(model=XL | {"head_size": 128})
    assert wide.cache_gib == pytest.approx(2 * half.cache_gib, abs=0.002)


def test_what_is_not_known_is_not_guessed():
    assert memory().cache_gib is None
    assert memory("ml.c5.xlarge") is None
    assert memory("ml.p6e-gb200.36xlarge") is None
    custom = {
        "container": "custom",
        "image_uri": f"{LOCAL.account}.dkr.ecr.us-east-1.amazonaws.com/x:1",
    }
    assert memory(serving=custom) is None


def test_weights_that_cannot_fit_are_refused():
    assert findings(weights_fit_accelerator, model={"parameters": 20_000_000_000}) == [
        (
            "endpoint.instances[0]",
            "20,000,000,000 weights take 37.3 GiB; ml.g4dn.xlarge has 16.0 GiB (NVIDIA T4)",
            "Choose an instance type whose GPU has more memory, or a smaller precision.",
        )
    ]
    large = {"parameters": 20_000_000_000}
    assert findings(weights_fit_accelerator, model=large, endpoint=on("ml.p4d.24xlarge")) == []
    assert findings(weights_fit_accelerator) == []


def test_a_gpu_that_is_nearly_full_is_worth_a_warning():
    def messages(parameters: int) -> list[str]:
        config = model_config(model={"parameters": parameters})
        artifact = ArtifactPlan("b", DIGEST, 1, 1, "cpu", published=True)
        situation = situation_of(config, instance_types(), LOCAL)
        return [item.message for item in memory_nearly_full(Subject(situation, artifact))]

    assert messages(7_000_000_000) == []
    (message,) = messages(7_500_000_000)
    assert message == (
        "ml.g4dn.xlarge has 16.0 GiB for an estimated 15.0: weights 14.0, cache unknown, assumed "
        "for the rest 1.0."
    )
