"""Weights on accelerators: refusals word for word, and configs that pass."""

from typing import Any

from slipway.planning import advice
from slipway.planning.advice import disk_nearly_full, download_may_time_out
from slipway.planning.partial import rules_of
from slipway.planning.rules.sizes import weights_fit_accelerator
from tests.unit.planning.models import (
    BERT,
    FLAN_T5_XXL,
    FLAN_UL2,
    GPT_J,
    LLAMA_8B,
    custom,
    lmi,
    neuron,
    triton,
    vllm,
)
from tests.unit.planning.rule_findings import findings, on

FIELD = "endpoint.instances[0]"


def refused(instance: str, **sections: Any) -> tuple[str, str]:
    ((field, message, remedy),) = findings(
        weights_fit_accelerator, endpoint=on(instance), **sections
    )
    assert field == FIELD
    return message, remedy


def test_advice_is_given():
    assert {disk_nearly_full, download_may_time_out} <= set(rules_of(advice))


class TestWeights:
    def test_weights_fit_accelerator(self):
        large = {"parameters": 20_000_000_000}
        assert refused("ml.g4dn.xlarge", model=large) == (
            "20,000,000,000 weights in fp16 take 37.3 GiB; ml.g4dn.xlarge has 16.0 GiB (NVIDIA T4)",
            "Choose an instance type whose GPU has more memory.",
        )
        assert findings(weights_fit_accelerator, model=large, endpoint=on("ml.p4d.24xlarge")) == []
        assert findings(weights_fit_accelerator) == []
        serving = lmi("djl-deepspeed", dtype="fp32")
        assert refused("ml.g4dn.2xlarge", model=GPT_J, serving=serving) == (
            "6,050,882,784 weights in fp32 take 22.5 GiB; ml.g4dn.2xlarge has 16.0 GiB (NVIDIA T4)",
            "Set `dtype: fp16`, or choose an instance type whose accelerators have more memory.",
        )
        half = serving | {"dtype": "fp16"}
        endpoint = on("ml.g4dn.2xlarge")
        assert findings(weights_fit_accelerator, model=GPT_J, serving=half, endpoint=endpoint) == []
        assert refused("ml.g5.12xlarge", model=FLAN_T5_XXL, serving=lmi(dtype="fp32")) == (
            "11,300,000,000 weights in fp32 take 42.1 GiB; ml.g5.12xlarge has 22.4 GiB "
            "(NVIDIA A10G)",
            "Raise `tensor_parallel_degree` to 2, or set `dtype: bf16`, or choose an instance type "
            "whose accelerators have more memory.",
        )
        four = lmi(dtype="fp32", tensor_parallel_degree=4)
        endpoint = on("ml.g5.12xlarge")
        assert (
            findings(weights_fit_accelerator, model=FLAN_T5_XXL, serving=four, endpoint=endpoint)
            == []
        )
        # 20.9 GiB: below the GPU's memory, above nine tenths of it.
        model = LLAMA_8B | {"parameters": 11_200_000_000}
        endpoint = on("ml.g5.2xlarge")
        message, _ = refused("ml.g5.2xlarge", model=model, serving=vllm())
        assert message == (
            "11,200,000,000 weights in bf16 take 20.9 GiB; ml.g5.2xlarge has 22.4 GiB "
            "(NVIDIA A10G), of which vLLM takes 90 %"
        )
        plain = vllm(rolling_batch="disable")
        assert (
            findings(weights_fit_accelerator, model=model, serving=plain, endpoint=endpoint) == []
        )

    def test_a_smaller_precision_where_that_is_enough(self):
        model = {"parameters": 5_000_000_000}
        assert refused("ml.g4dn.xlarge", model=model, serving={"dtype": "fp32"}) == (
            "5,000,000,000 weights in fp32 take 18.6 GiB; ml.g4dn.xlarge has 16.0 GiB (NVIDIA T4)",
            "Set `dtype: fp16`, or choose an instance type whose GPU has more memory.",
        )
        _, remedy = refused(
            "ml.g4dn.xlarge", model={"parameters": 10_000_000_000}, serving={"dtype": "fp32"}
        )
        assert remedy == "Choose an instance type whose GPU has more memory."

    def test_t5_is_not_sent_to_a_precision_that_it_or_the_gpu_lacks(self):
        small = FLAN_T5_XXL | {"parameters": 6_000_000_000}
        _, remedy = refused("ml.g4dn.2xlarge", model=small, serving=lmi(dtype="fp32"))
        assert "dtype" not in remedy
        _, remedy = refused("ml.g4dn.2xlarge", model=GPT_J, serving=lmi(dtype="fp32"))
        assert "`dtype: fp16`" in remedy

    def test_flan_ul2_has_no_smaller_precision_to_go_to(self):
        assert refused("ml.g5.2xlarge", model=FLAN_UL2, serving=lmi(dtype="bf16")) == (
            "19,459,584,000 weights in bf16 take 36.2 GiB; ml.g5.2xlarge has 22.4 GiB "
            "(NVIDIA A10G)",
            "Choose an instance type whose accelerators have more memory, or take a type with more "
            "accelerators and raise `tensor_parallel_degree`.",
        )

    def test_a_type_with_just_as_many_accelerators_is_an_alternative(self):
        model = LLAMA_8B | {"parameters": 100_000_000_000}
        serving = vllm(tensor_parallel_degree=8)
        _, remedy = refused("ml.g5.48xlarge", model=model, serving=serving)
        assert "choose an instance type whose accelerators have more memory" in remedy.lower()

    def test_a_copy_over_several_names_the_sum_and_the_part(self):
        model = LLAMA_8B | {"parameters": 70_000_000_000}
        serving = vllm(tensor_parallel_degree=4)
        message, remedy = refused("ml.g5.48xlarge", model=model, serving=serving)
        assert message == (
            "70,000,000,000 weights in bf16 take 130.4 GiB, 32.6 on each of 4; ml.g5.48xlarge has "
            "4 x 22.4 GiB (NVIDIA A10G), of which vLLM takes 90 %"
        )
        assert remedy == (
            "Raise `tensor_parallel_degree` to 8, or choose an instance type whose accelerators "
            "have more memory."
        )

    def test_a_degree_divides_the_heads_and_the_gpus(self):
        model = LLAMA_8B | {"parameters": 70_000_000_000, "attention_heads": 28}
        serving = vllm(tensor_parallel_degree=4)
        _, remedy = refused("ml.g5.48xlarge", model=model, serving=serving)
        assert "Raise" not in remedy
        fewer = GPT_J | {"parameters": 20_000_000_000, "attention_heads": 12}
        _, remedy = refused("ml.g5.12xlarge", model=fewer, serving=lmi(dtype="fp32"))
        # 3 would divide the heads and be enough, but not the four GPUs.
        assert remedy.startswith("Raise `tensor_parallel_degree` to 4, or choose")

    def test_what_no_single_accelerator_has(self):
        model = LLAMA_8B | {"parameters": 400_000_000_000}
        _, remedy = refused("ml.g5.2xlarge", model=model, serving=vllm())
        assert remedy == "Take a type with more accelerators and raise `tensor_parallel_degree`."
        model = LLAMA_8B | {"parameters": 4_000_000_000_000}
        _, remedy = refused("ml.g5.2xlarge", model=model, serving=vllm())
        assert remedy == "Use a smaller model: no instance type has the memory."

    def test_copies_of_a_group(self):
        model = {"parameters": 2_900_000_000}
        serving = triton(instance_group_count=4, dtype="fp32")
        assert refused("ml.g5.xlarge", model=model, serving=serving) == (
            "4 copies of 2,900,000,000 weights in fp32 take 43.2 GiB; ml.g5.xlarge has 22.4 GiB "
            "(NVIDIA A10G)",
            "Lower `instance_group_count` to 2, or set `dtype: fp16`, or choose an instance type "
            "whose GPU has more memory.",
        )

    def test_copies_on_a_neuron_device(self):
        model = BERT | {"parameters": 1_500_000_000}
        assert refused("ml.inf1.xlarge", model=model, serving=neuron()) == (
            "4 copies of 1,500,000,000 weights in bf16 take 11.2 GiB; ml.inf1.xlarge has 8.0 GiB "
            "(AWS Inferentia)",
            "Lower `workers` to 2.",
        )
        two = neuron(workers=2)
        endpoint = on("ml.inf1.xlarge")
        assert findings(weights_fit_accelerator, model=model, serving=two, endpoint=endpoint) == []
        large = BERT | {"parameters": 10_000_000_000}
        newer = neuron(framework="neuronx", workers=2)
        _, remedy = refused("ml.inf2.xlarge", model=large, serving=newer)
        assert remedy == (
            "Lower `workers` to 1, or choose an instance type whose device has more memory."
        )
        serving = custom(dtype="fp16")
        assert refused("ml.g5.12xlarge", model={"parameters": 50_000_000_000}, serving=serving) == (
            "50,000,000,000 weights in fp16 take 93.1 GiB, 23.3 on each of 4; ml.g5.12xlarge has "
            "4 x 22.4 GiB (NVIDIA A10G)",
            "Choose an instance type whose accelerators have more memory.",
        )
        fits = {"model": {"parameters": 47_000_000_000}, "serving": serving}
        assert findings(weights_fit_accelerator, endpoint=on("ml.g5.12xlarge"), **fits) == []
        pool = {"instances": ["ml.g5.xlarge", "ml.g4dn.xlarge"]}
        model = {"parameters": 10_000_000_000}
        found = findings(weights_fit_accelerator, model=model, endpoint=pool)
        assert [field for field, _, _ in found] == ["endpoint.instances[1]"]

    def test_a_pipeline_of_more_cores(self):
        model = BERT | {"parameters": 9_500_000_000}
        serving = neuron(objective="latency", pipeline_cores=6)
        assert refused("ml.inf1.6xlarge", model=model, serving=serving) == (
            "9,500,000,000 weights in bf16 take 17.7 GiB, 11.8 on each of 2; ml.inf1.6xlarge has "
            "2 x 8.0 GiB (AWS Inferentia)",
            "Raise `pipeline_cores` to 9.",
        )
        # Two workers have eight cores each.
        both = serving | {"workers": 2}
        _, remedy = refused("ml.inf1.6xlarge", model=model, serving=both)
        assert "pipeline_cores" not in remedy
