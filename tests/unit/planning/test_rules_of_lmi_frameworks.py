"""LMI's partition frameworks: the one that runs a model, and each refusal, word for word."""

from typing import Any

import pytest

from slipway.facts.lmi.options import CUSTOM
from slipway.planning.deployment import Rule
from slipway.planning.families.lmi.rules import frameworks as lmi_frameworks
from slipway.planning.partial import rules_of
from tests.support.projects import PRODUCTION
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, NEURONX, TRTLLM, VLLM, found, sections
from tests.unit.planning.lmi_older_images import (
    ACCELERATE,
    DEEPSPEED_022,
    FT_021,
    FT_022,
    LMI_030,
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
        # On gpus it is at home.
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
