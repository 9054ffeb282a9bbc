"""Model families on LMI: refusals and advice word for word, and configs that pass."""

from typing import Any

from slipway.planning.families.lmi.rules import accelerators as lmi
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, TRTLLM, VLLM, found, warnings
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
