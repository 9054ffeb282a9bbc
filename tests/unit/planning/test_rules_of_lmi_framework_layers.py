"""A model's layers on LMI's accelerators: refusals word for word, and configs that pass."""

from typing import Any

import pytest

from slipway.planning.deployment import Rule
from slipway.planning.families.lmi.partitioning import splits_layers
from slipway.planning.families.lmi.rules import accelerators as lmi
from slipway.planning.families.lmi.rules import frameworks as lmi_frameworks
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, NEURONX, TRTLLM, VLLM, found
from tests.unit.planning.lmi_older_images import (
    ACCELERATE,
    DEEPSPEED_023,
    LMI_029,
    LMI_030,
    LMI_032,
    READER,
)
from tests.unit.planning.rule_findings import only

CHECKPOINT = {"checkpoint": "ds_inference_config.json"}


class TestPipeline:
    rule: Rule = staticmethod(lmi_frameworks.pipeline_is_possible)

    @pytest.mark.parametrize(
        ("image", "serving", "title"),
        [
            (VLLM, {}, "vLLM"),
            (LMI_029, {"rolling_batch": "vllm"}, "vLLM"),
            (LMI_029, {"rolling_batch": "lmi-dist", "engine": "MPI"}, "lmi-dist"),
            (("djl-tensorrtllm", "0.29.0"), {}, "TensorRT-LLM"),
            (("djl-neuronx", "0.29.0"), {}, "Transformers-NeuronX"),
        ],
    )
    def test_one_that_the_framework_has_not(self, image, serving, title):
        assert only(found(self.rule, image, pipeline_parallel_degree=2, **serving)) == (
            "serving.pipeline_parallel_degree",
            f"{title} of {' '.join(image)} has no pipeline parallelism; the degree is 2",
            "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
        )
        assert found(self.rule, image, pipeline_parallel_degree=1, **serving) == []

    def test_pipeline_is_possible(self):
        assert only(found(self.rule, LMI_029, pipeline_parallel_degree=2, **ACCELERATE)) == (
            "serving.pipeline_parallel_degree",
            "Hugging Face Accelerate of djl-lmi 0.29.0 has no pipeline parallelism; the degree "
            "is 2",
            "Remove it, and set `tensor_parallel_degree` to the number of GPUs.",
        )
        # DJL Serving takes lmi-dist for most of the models here.
        assert found(self.rule, LMI_030, pipeline_parallel_degree=2) == []
        lmi_dist = {"rolling_batch": "lmi-dist", "engine": "MPI"}
        assert found(self.rule, LMI_030, pipeline_parallel_degree=2, **lmi_dist) == []
        image = ("djl-lmi", "0.34.0")
        ((_, message, _),) = found(
            self.rule, image, pipeline_parallel_degree=2, entry_point="djl_python.huggingface"
        )
        assert message == (
            "Hugging Face Accelerate or vLLM of djl-lmi 0.34.0 has no pipeline parallelism; the "
            "degree is 2"
        )
        # What no source says passes.
        assert found(self.rule, FT, pipeline_parallel_degree=2) == []
        assert found(self.rule, TRTLLM, pipeline_parallel_degree=2) == []

    @pytest.mark.parametrize("image", [DEEPSPEED, NEURONX, ("djl-lmi", "0.28.0")], ids="-".join)
    def test_an_ignored_key_is_refused_by_another_rule(self, image):
        assert found(self.rule, image, pipeline_parallel_degree=2) == []
        assert len(found(lmi.pipeline_is_read, image, pipeline_parallel_degree=2)) == 1


class TestLayersOfAccelerate:
    rule: Rule = staticmethod(lmi_frameworks.layers_are_laid_out)

    def test_layers_are_laid_out(self):
        assert only(found(self.rule, VLLM, tensor_parallel_degree=4, **ACCELERATE)) == (
            "serving.tensor_parallel_degree",
            f"without a rolling batch {READER} loads the model on one GPU of 4, whatever the "
            "degree",
            "Add `device_map: auto` to `options`, which lays whole layers on them, or set "
            "`tensor_parallel_degree: 1`.",
        )
        assert len(found(self.rule, LMI_030, tensor_parallel_degree=4, max_batch_size=2)) == 1
        # A map lays them out.
        options = {"device_map": "auto"}
        assert found(self.rule, VLLM, tensor_parallel_degree=4, **ACCELERATE, options=options) == []
        # A rolling batch lays them out.
        scheduler = {"rolling_batch": "scheduler"}
        assert found(self.rule, LMI_032, tensor_parallel_degree=4, **scheduler) == []
        # The degree lays them out until 0.29.
        assert found(self.rule, LMI_029, tensor_parallel_degree=4, **ACCELERATE) == []
        # Other frameworks split the layers.
        assert found(self.rule, VLLM, tensor_parallel_degree=4) == []
        assert found(self.rule, LMI_030, tensor_parallel_degree=4) == []
        # One GPU is no matter.
        assert found(self.rule, VLLM, tensor_parallel_degree=1, **ACCELERATE) == []
        image, huggingface = ("djl-deepspeed", "0.19.0"), {"entry_point": "djl_python.huggingface"}
        assert only(found(self.rule, image, tensor_parallel_degree=4, **huggingface)) == (
            "serving.tensor_parallel_degree",
            "djl_python.huggingface of djl-deepspeed 0.19.0 loads the model on one GPU; the "
            "degree is 4",
            "Set `tensor_parallel_degree: 1`, or use a later version.",
        )
        later = ("djl-deepspeed", "0.20.0")
        assert found(self.rule, later, tensor_parallel_degree=4, **huggingface) == []

    def test_whole_layers_need_no_divisor_of_the_heads(self):
        heads = {"model": {"family": "gpt2", "attention_heads": 25}}
        rule = lmi.degree_divides_heads
        assert found(rule, LMI_029, tensor_parallel_degree=4, **ACCELERATE, **heads) == []
        assert len(found(rule, LMI_029, tensor_parallel_degree=4, **heads)) == 1
        assert len(found(rule, VLLM, tensor_parallel_degree=4, **heads)) == 1
        # What a script does with the degree is not known.
        assert len(found(rule, VLLM, tensor_parallel_degree=4, script="own", **heads)) == 1


class TestQuantizedLayers:
    rule: Rule = staticmethod(lmi_frameworks.quantized_layers_have_places)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("quantize", "bitsandbytes8"),
            ("quantize", "bitsandbytes4"),
            ("load_in_8bit", True),
            ("load_in_4bit", "true"),
        ],
    )
    def test_bitsandbytes_without_a_map(self, key, value):
        assert only(found(self.rule, VLLM, **ACCELERATE, options={key: value})) == (
            f"serving.options.{key}",
            f"without a rolling batch {READER} loads with bitsandbytes only by a `device_map`",
            "Add `device_map: auto` to `options`.",
        )
        with_a_map = {key: value, "device_map": "auto"}
        assert found(self.rule, VLLM, **ACCELERATE, options=with_a_map) == []
        # There the degree, which is always written, makes a map.
        assert found(self.rule, LMI_029, **ACCELERATE, options={key: value}) == []

    @pytest.mark.parametrize(
        ("key", "value"),
        [("quantize", "awq"), ("load_in_8bit", False), ("load_in_4bit", "false"), ("task", "t")],
    )
    def test_other_options_pass(self, key, value):
        assert found(self.rule, VLLM, **ACCELERATE, options={key: value}) == []

    def test_vllm_quantizes_otherwise(self):
        options = {"quantize": "bitsandbytes4"}
        assert found(self.rule, VLLM, rolling_batch="vllm", options=options) == []


def test_shards_are_not_quantized():
    rule = lmi_frameworks.shards_are_not_quantized
    options = {**CHECKPOINT, "quantize": "smoothquant"}
    assert only(found(rule, DEEPSPEED, options=options)) == (
        "serving.options.quantize",
        "djl_python.deepspeed of djl-deepspeed 0.27.0 does not quantize the shards that "
        "`checkpoint` names",
        "Remove `quantize` or `checkpoint`.",
    )
    # One alone passes.
    assert found(rule, DEEPSPEED, options=CHECKPOINT) == []
    assert found(rule, DEEPSPEED, options={"quantize": "smoothquant"}) == []
    # What is not read is refused by another rule.
    options = {**CHECKPOINT, "quantize": "smoothquant"}
    assert found(rule, DEEPSPEED_023, options=options) == []


def test_unknown_frameworks_are_taken_to_split_layers():
    def look(deployment: Any) -> Any:
        assert splits_layers(deployment.setup)
        return iter(())

    assert found(look, VLLM, script="handlers/t5") == []
    assert found(look, VLLM) == []
