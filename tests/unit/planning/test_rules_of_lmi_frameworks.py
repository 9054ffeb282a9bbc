"""LMI's partition frameworks: the one that runs a model, and each refusal, word for word."""

from typing import Any

import pytest

from slipway.facts.lmi.options import CUSTOM
from slipway.planning.deployment import Rule
from slipway.planning.families.lmi.partitioning import splits_layers
from slipway.planning.families.lmi.rules import accelerators as lmi
from slipway.planning.families.lmi.rules import batching as lmi_frameworks
from slipway.planning.partial import rules_of
from tests.support.projects import PRODUCTION
from tests.unit.planning.lmi_findings import (
    ACCELERATE,
    DEEPSPEED,
    DEEPSPEED_022,
    DEEPSPEED_023,
    FT,
    FT_021,
    FT_022,
    LMI_029,
    LMI_030,
    LMI_032,
    NEURONX,
    READER,
    TRTLLM,
    VLLM,
    found,
    sections,
)
from tests.unit.planning.rule_findings import findings, only


def titles(image: tuple[str, str], **serving: Any) -> list[str]:
    """Returns the frameworks that may run a config, seen through a rule that never complains."""
    names: list[str] = []

    def look(deployment: Any) -> Any:
        names.extend(each.title for each in deployment.frameworks)
        return iter(())

    assert found(look, image, **serving) == []
    return names


@pytest.mark.parametrize("image", [FT, DEEPSPEED, VLLM, NEURONX, TRTLLM], ids="-".join)
@pytest.mark.parametrize("rule", rules_of(lmi_frameworks), ids=lambda rule: rule.__name__)
def test_a_plain_config_breaks_no_rule(rule, image):
    assert found(rule, image, environment=PRODUCTION) == []


@pytest.mark.parametrize("rule", rules_of(lmi_frameworks), ids=lambda rule: rule.__name__)
def test_an_unknown_handler_is_left_alone(rule):
    assert found(rule, VLLM, entry_point="djl_python.no_such", max_batch_size=4) == []


@pytest.mark.parametrize("rule", rules_of(lmi_frameworks), ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("image", [FT_021, LMI_030, VLLM, NEURONX], ids="-".join)
def test_a_script_of_ones_own_may_do_what_it_likes(rule, image):
    given = {"max_batch_size": 4, "options": {"enable_streaming": "true", "quantize": "awq"}}
    assert found(rule, image, script="handlers/t5", tensor_parallel_degree=2, **given) == []


class TestWhichFramework:
    @pytest.mark.parametrize(
        ("image", "serving", "expected"),
        [
            (FT, {}, ["FasterTransformer"]),
            (DEEPSPEED, {}, ["DeepSpeed"]),
            (DEEPSPEED, {"rolling_batch": "lmi-dist"}, ["lmi-dist"]),
            (DEEPSPEED, {"rolling_batch": "scheduler"}, ["Hugging Face Accelerate"]),
            (VLLM, {}, ["vLLM"]),
            (VLLM, {"rolling_batch": "vllm"}, ["vLLM"]),
            (VLLM, ACCELERATE, ["Hugging Face Accelerate"]),
            (VLLM, {"max_batch_size": 4}, ["Hugging Face Accelerate"]),
            (LMI_030, {}, ["Hugging Face Accelerate", "lmi-dist", "vLLM"]),
            (TRTLLM, {}, ["TensorRT-LLM"]),
            (NEURONX, {}, ["Transformers-NeuronX"]),
            (NEURONX, {"script": "handlers/t5"}, []),
            # A rolling batch that this version does not have: another rule says so.
            (
                DEEPSPEED_022,
                {"entry_point": "djl_python.huggingface", "rolling_batch": "vllm"},
                [],
            ),
            (VLLM, {"entry_point": "djl_python.no_such"}, []),
        ],
    )
    def test_what_a_config_comes_to(self, image, serving, expected):
        assert titles(image, **serving) == expected

    def test_a_script_is_of_no_framework(self):
        assert CUSTOM == "custom"
        assert titles(FT, script="handlers/t5") == []


class TestNeuron:
    rule: Rule = staticmethod(lmi_frameworks.framework_runs_on_neuron)

    @pytest.mark.parametrize("rolling_batch", [None, "disable"])
    def test_accelerate_knows_gpus(self, rolling_batch):
        serving = {"entry_point": "djl_python.huggingface", "rolling_batch": rolling_batch}
        assert only(found(self.rule, NEURONX, **serving)) == (
            "serving.entry_point",
            "djl_python.huggingface of djl-neuronx 0.27.0 loads the model on a GPU, and "
            "Inferentia and Trainium have none",
            "Remove `entry_point`: the image's own is `djl_python.transformers_neuronx`.",
        )

    def test_framework_runs_on_neuron(self):
        serving = {"entry_point": "djl_python.huggingface", "rolling_batch": "vllm"}
        assert found(self.rule, NEURONX, **serving) == []
        # On GPUs it is at home.
        assert found(self.rule, VLLM, **ACCELERATE) == []


class TestCompiling:
    rule: Rule = staticmethod(lmi_frameworks.compiling_has_a_command)

    def found(self, image: tuple[str, str], **serving: Any) -> list[tuple[str, str, str]]:
        given = sections(image, **serving)
        instance = "ml.c5.4xlarge" if image[0] == "djl-neuronx" else "ml.g5.12xlarge"
        weights = {"source": "s3", "uri": "s3://my-models/flan-t5-xxl/"}
        artifacts = {"weights": weights, "compile": {"instance": instance}, "release": None}
        return findings(self.rule, PRODUCTION, **given, artifacts=artifacts)

    @pytest.mark.parametrize(
        ("image", "serving", "title"),
        [
            (VLLM, {}, "vLLM"),
            (VLLM, ACCELERATE, "Hugging Face Accelerate"),
            (LMI_030, {}, "Hugging Face Accelerate or lmi-dist or vLLM"),
        ],
    )
    def test_what_is_split_when_it_is_loaded(self, image, serving, title):
        assert only(self.found(image, **serving)) == (
            "artifacts.compile",
            f"{title} of {' '.join(image)} partitions no weights ahead of time",
            "Remove `compile`: they are split when they are loaded.",
        )

    def test_a_version_before_the_command(self):
        assert only(self.found(FT_021)) == (
            "artifacts.compile",
            "FasterTransformer of djl-fastertransformer 0.21.0 partitions no weights ahead of time",
            "Remove `compile`: they are split when they are loaded. Or use version 0.24.0, "
            "which does.",
        )

    @pytest.mark.parametrize("image", [FT, FT_022, DEEPSPEED, TRTLLM, NEURONX], ids="-".join)
    def test_what_has_a_command(self, image):
        assert self.found(image) == []

    def test_without_compile_nothing_is_asked(self):
        assert found(self.rule, VLLM, environment=PRODUCTION) == []

    def test_a_script_may_have_a_command_of_its_own(self):
        assert self.found(VLLM, script="handlers/t5") == []


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
