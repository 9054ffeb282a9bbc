"""Networks, families and weights that LMI images load: refusals, advice, and what passes."""

from typing import Any

import pytest

from slipway.planning.families.lmi.rules import accelerators as lmi
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, NEURONX, TRTLLM, VLLM, found, warnings
from tests.unit.planning.rule_findings import only


def family(name: str) -> dict[str, Any]:
    return {"family": name, "parameters": 1000}


class TestFamilies:
    def test_family_is_supported(self):
        rule, old = lmi.family_is_supported, ("djl-deepspeed", "0.21.0")
        assert only(found(rule, old, model=family("llama"))) == (
            "model.family",
            "djl_python.deepspeed of djl-deepspeed 0.21.0 takes no model of the family llama",
            "It takes roberta, xlm-roberta, gpt2, bert, gpt_neo, gptj, opt, gpt_neox, bloom; "
            "choose another version or framework.",
        )
        for name in ("gptj", "xlm_roberta", "other"):
            assert found(rule, old, model=family(name)) == []
        assert found(rule, DEEPSPEED, model=family("t5")) == []
        ((_, message, _),) = found(rule, ("djl-neuronx", "0.23.0"), model=family("t5"))
        assert message == (
            "djl_python.transformers-neuronx of djl-neuronx 0.23.0 takes no model of the family t5"
        )
        rule, quantized = lmi.family_is_supported, {"options": {"quantize": "smoothquant"}}
        ((_, message, _),) = found(rule, DEEPSPEED, model=family("opt"), **quantized)
        assert message == (
            "djl_python.deepspeed of djl-deepspeed 0.27.0 with `quantize: smoothquant` takes no "
            "model of the family opt"
        )
        assert found(rule, DEEPSPEED, model=family("gptj"), **quantized) == []
        assert found(rule, DEEPSPEED, model=family("opt")) == []

    def test_families_that_only_run_are_warned_of(self):
        assert only(warnings(DEEPSPEED, family="t5")) == (
            "lmi-family-without-kernels",
            "djl_python.deepspeed of djl-deepspeed 0.27.0 has no fast kernels for the family "
            "t5; it has for roberta, xlm-roberta, gpt2, bert, gpt_neo, gptj, opt, gpt_neox, "
            "bloom, llama.",
        )
        assert only(warnings(FT, family="llama")) == (
            "lmi-family-not-detected",
            "djl_python.fastertransformer of djl-fastertransformer 0.24.0 is not what DJL "
            "Serving would choose for the family llama: it takes it for bloom, gpt_neox, gpt2, "
            "t5, opt, gptj. Try the model before you rely on it.",
        )
        for image, name in [(DEEPSPEED, "llama"), (FT, "t5"), (FT, "other"), (VLLM, "llama")]:
            assert warnings(image, family=name) == []

    def test_batches_that_mix_answers(self):
        rule, mixing = lmi.answers_are_not_mixed, ("djl-fastertransformer", "0.23.0")
        assert only(found(rule, mixing, max_batch_size=4)) == (
            "serving.max_batch_size",
            "djl-fastertransformer 0.23.0 with batches of 4: every request of a batch gets the "
            "answer of the first",
            "Set `max_batch_size: 1`, or use another version.",
        )
        assert found(rule, mixing) == []
        assert found(rule, FT, max_batch_size=4) == []
        other = {"entry_point": "djl_python.huggingface"}
        assert found(rule, mixing, max_batch_size=4, **other) == []

    def test_the_back_end_of_pytorch(self):
        rule, image = lmi.pytorch_backend_starts, ("djl-tensorrtllm", "0.33.0")
        assert only(found(rule, image, options={"backend": "pytorch"})) == (
            "serving.options.backend",
            "`backend: pytorch` on djl-tensorrtllm 0.33.0: no worker gets ready, for the "
            "handler names a setting of TensorRT-LLM, enable_overlap_scheduler, that has had "
            "another name since May 2025",
            "Remove it: an engine is built of the weights, or compile them ahead of time.",
        )
        assert found(rule, image) == []
        assert found(rule, image, options={"backend": "tensorrt"}) == []
        assert found(rule, TRTLLM, options={"backend": "pytorch"}) == []

    def test_t5_in_fp16(self):
        rule, t5 = lmi.t5_is_not_in_fp16, family("t5")
        assert only(found(rule, FT, model=t5, dtype="fp16")) == (
            "serving.dtype",
            "T5 in fp16 on djl-fastertransformer 0.24.0: degraded text; fp32 and bf16 are fine",
            "Set `dtype: fp32` or `dtype: bf16`.",
        )
        for dtype in ("fp32", "bf16"):
            assert found(rule, FT, model=t5, dtype=dtype) == []
        assert found(rule, FT, model=family("gpt2"), dtype="fp16") == []
        assert found(rule, VLLM, model=t5, dtype="fp16") == []


NEWEST, OLD = ("djl-lmi", "0.38.0"), ("djl-lmi", "0.32.0")
V100, T4, A10G = (
    {"instances": [f"ml.{name}"]} for name in ("p3.8xlarge", "g4dn.12xlarge", "g5.12xlarge")
)


def network(family: str = "other", architecture: str | None = None, **more: Any) -> dict[str, Any]:
    given = {} if architecture is None else {"architecture": architecture}
    return {"family": family, "parameters": 1000} | given | more


class TestNetworks:
    rule = staticmethod(lmi.engine_has_network)

    @pytest.mark.parametrize(
        ("image", "model", "field", "message", "remedy"),
        [
            (
                OLD, network("qwen3_moe", "Qwen3MoeForCausalLM"), "architecture",
                "vLLM 0.7.3 of djl-lmi 0.32.0 has no code for the network Qwen3MoeForCausalLM",
                "djl-lmi 0.33.0 has it.",
            ),
            (
                OLD, network("gemma3"), "family",
                "vLLM 0.7.3 of djl-lmi 0.32.0 has no code for the network "
                "Gemma3ForConditionalGeneration",
                "djl-lmi 0.33.0 has it.",
            ),
            (
                NEWEST, network("other", "BaichuanForCausalLM"), "architecture",
                "vLLM 0.28.0 of djl-lmi 0.38.0 has no code for the network BaichuanForCausalLM",
                "djl-lmi 0.36.0 has it.",
            ),
            # vLLM has dropped it, and its processor does not count an image's tokens.
            (
                VLLM, network("mllama", "MllamaForConditionalGeneration"), "architecture",
                "vLLM 0.23.0 of djl-lmi 0.36.0 has no code for the network "
                "MllamaForConditionalGeneration",
                "djl-lmi 0.34.0 has it.",
            ),
            (
                VLLM, network("gpt_neo"), "family",
                "vLLM 0.23.0 of djl-lmi 0.36.0 has no code for the network GPTNeoForCausalLM",
                "No image of Slipway's facts has it with this engine: choose another framework.",
            ),
            (
                TRTLLM, network("qwen3"), "family",
                "TensorRT-LLM 0.12.0 of djl-tensorrtllm 0.30.0 has no code for the network "
                "Qwen3ForCausalLM",
                "djl-tensorrtllm 0.33.0 has it.",
            ),
            (
                NEURONX, network("qwen2"), "family",
                "Transformers-NeuronX 0.10.0.360 of djl-neuronx 0.27.0 has no code for the network "
                "Qwen2ForCausalLM",
                "No image of Slipway's facts has it with this engine: choose another framework.",
            ),
        ],
    )  # fmt: skip
    def test_the_nearest_image_that_has_it_is_named(self, image, model, field, message, remedy):
        options = {} if image != OLD else {"rolling_batch": "vllm"}
        assert found(self.rule, image, model=model, **options) == [
            (f"model.{field}", message, remedy)
        ]

    def test_engine_has_network(self):
        base, model = ("djl-lmi", "0.34.0"), network("gemma4")
        for on, remedy in ((T4, "has it."), (V100, "has it, on a newer GPU.")):
            ((_, _, said),) = found(self.rule, base, model=model, endpoint=on)
            assert said == f"djl-lmi 0.36.0 {remedy}"
        model = network("other", "MineForCausalLM")
        assert found(self.rule, NEWEST, model=model, trust_remote_code=True) == []
        assert found(self.rule, NEWEST, model=model, options={"hf_overrides": "{}"}) == []
        before = ("djl-lmi", "0.31.0")
        options: dict[str, Any] = {"rolling_batch": "vllm", "trust_remote_code": True}
        assert len(found(self.rule, before, model=model, **options)) == 1
        image = ("djl-lmi", "0.34.0")
        assert len(found(self.rule, image, model=network("gemma4"))) == 1
        assert found(self.rule, image, model=network("other", "BertForMaskedLM")) == []
        assert found(self.rule, image, model=network("gemma4"), rolling_batch="disable") == []

    @pytest.mark.parametrize(
        ("image", "model"),
        [
            (NEWEST, network("qwen3_moe", "Qwen3MoeForCausalLM")),
            (("djl-lmi", "0.33.0"), network("gemma3")),
            # The class of a checkpoint counts, and of a family any class of its network.
            (NEWEST, network("bert", "BertForSequenceClassification")),
            (NEWEST, network("llama4")),
            # An adapter of vLLM makes a classifier of the network that writes.
            (NEWEST, network("qwen3", "Qwen3ForSequenceClassification")),
            # Only Transformers has code for it, which vLLM runs.
            (NEWEST, network("smollm3", "SmolLM3ForCausalLM")),
            # Nothing tells the class, or which engine there is.
            (NEWEST, network("other")),
            (NEWEST, network("of_my_own")),
            (OLD, network("gpt_neo")),
            # Optimum loads what writes nothing.
            (NEURONX, network("bert")),
        ],
    )
    def test_what_an_engine_has_passes(self, image, model):
        assert found(self.rule, image, model=model) == []


class TestQuantization:
    rule = staticmethod(lmi.gpu_has_quantization)

    @pytest.mark.parametrize(
        ("method", "least", "image"),
        [("awq", "sm75", None), ("fp8", "sm80", None), ("mxfp4", "sm80", None)],
    )
    def test_a_v100_has_no_kernels_for_newer_methods(self, method, least, image):
        expected = [
            (
                "endpoint.instances[0]",
                f"vLLM 0.11.1 of djl-lmi 0.35.0 loads weights in {method} on {least} or newer; "
                "ml.p3.8xlarge has NVIDIA V100 (sm70)",
                "No image loads them there. Or choose an instance type with a newer GPU, or other "
                "weights.",
            )
        ]
        on = {"endpoint": V100}
        base = ("djl-lmi", "0.35.0")
        assert found(self.rule, base, options={"quantize": method}, **on) == expected
        stored = network("other", "LlamaForCausalLM", quantization=method)
        assert found(self.rule, base, model=stored, **on) == expected
        twice = {"model": stored, "options": {"quantize": method}}
        assert found(self.rule, base, **twice, **on) == expected

    def test_gpu_has_quantization(self):
        stored = network("qwen3", quantization="fp8")
        ((_, message, remedy),) = found(self.rule, ("djl-lmi", "0.35.0"), model=stored, endpoint=T4)
        assert message.endswith("on sm80 or newer; ml.g4dn.12xlarge has NVIDIA T4 (sm75)")
        assert remedy.startswith("djl-lmi 0.36.0 loads them there. Or choose")
        assert found(self.rule, VLLM, model=stored, endpoint=T4) == []
        stored = network("other", "LlamaForCausalLM", quantization="mxfp4")
        assert only(found(self.rule, ("djl-lmi", "0.33.0"), model=stored, endpoint=A10G)) == (
            "model.quantization",
            "vLLM 0.8.4 of djl-lmi 0.33.0 does not load weights in mxfp4",
            "djl-lmi 0.34.0 does. Or choose other weights.",
        )
        given = {"options": {"quantize": "fp8"}, "model": network("llama")}
        ((_, message, _),) = found(self.rule, TRTLLM, endpoint=A10G, **given)
        assert message.startswith("TensorRT-LLM 0.12.0 of djl-tensorrtllm 0.30.0 loads weights in ")
        on_ada = {"instances": ["ml.g6.12xlarge"]}
        assert found(self.rule, TRTLLM, endpoint=on_ada, **given) == []

    @pytest.mark.parametrize(
        ("image", "method", "gpu"),
        [
            (("djl-lmi", "0.35.0"), "gptq", V100),
            (("djl-lmi", "0.35.0"), "bitsandbytes", V100),
            (("djl-lmi", "0.35.0"), "awq", T4),
            (NEWEST, "mxfp4", A10G),
            (NEWEST, "compressed_tensors", A10G),
            (NEWEST, "nvfp4", T4),
            (NEWEST, "of_my_own", A10G),
            # vLLM has a plugin for it, and no source says whether the image has that.
            (NEWEST, "bitsandbytes", A10G),
        ],
    )
    def test_methods_that_a_gpu_has(self, image, method, gpu):
        stored = network("other", "LlamaForCausalLM", quantization=method)
        assert found(self.rule, image, model=stored, endpoint=gpu) == []
