"""LMI's accelerators: refusals and advice word for word, and configs that pass."""

import dataclasses

import pytest

from slipway.facts.instances import instance_types
from slipway.planning.families.lmi.rules import accelerators as lmi
from slipway.planning.families.lmi.rules import options as lmi_options
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, NEURONX, VLLM, found, warnings
from tests.unit.planning.rule_findings import only


class TestAccelerators:
    def test_image_has_its_accelerator(self):
        rule = lmi.image_has_its_accelerator
        on = {"instances": ["ml.g5.xlarge", "ml.inf2.xlarge", "ml.c5.xlarge"]}
        remedy = (
            "Choose an instance type with an NVIDIA GPU, for example `ml.g5.xlarge` or "
            "`ml.g6.xlarge`."
        )
        assert found(rule, VLLM, endpoint=on) == [
            (
                "endpoint.instances[1]",
                "ml.inf2.xlarge has 1 x AWS Inferentia2; djl-lmi needs an NVIDIA GPU",
                remedy,
            ),
            (
                "endpoint.instances[2]",
                "ml.c5.xlarge has no accelerator; djl-lmi needs an NVIDIA GPU",
                remedy,
            ),
        ]
        on = {"instances": ["ml.inf2.xlarge", "ml.trn1.2xlarge", "ml.inf1.xlarge", "ml.g5.xlarge"]}
        assert [(field, text) for field, text, _ in found(rule, NEURONX, endpoint=on)] == [
            (
                "endpoint.instances[2]",
                "ml.inf1.xlarge has 1 x AWS Inferentia; djl-neuronx needs Inferentia 2 or Trainium",
            ),
            (
                "endpoint.instances[3]",
                "ml.g5.xlarge has 1 x NVIDIA A10G; djl-neuronx needs Inferentia 2 or Trainium",
            ),
        ]

    def test_of_what_is_not_known_nothing_is_said(self):
        unknown = dataclasses.replace(instance_types()["ml.c5.xlarge"], accelerator_known=False)
        for rule in (lmi.image_has_its_accelerator, lmi.copy_fits_instance):
            assert found(rule, VLLM, instance=unknown, tensor_parallel_degree=8) == []

    def test_copy_fits_instance(self):
        on = {"instances": ["ml.g5.48xlarge", "ml.g5.12xlarge"]}
        degrees = {"tensor_parallel_degree": 4, "pipeline_parallel_degree": 2}
        assert only(found(lmi.copy_fits_instance, FT, endpoint=on, **degrees)) == (
            "endpoint.instances[1]",
            "one copy takes 8 GPUs (tensor parallel degree 4 x pipeline parallel degree 2); "
            "ml.g5.12xlarge has 4",
            "Lower the degrees, or choose an instance type with more accelerators.",
        )
        assert found(lmi.copy_fits_instance, FT, tensor_parallel_degree=4) == []
        on = {"instances": ["ml.inf2.24xlarge"]}
        fits = {"endpoint": on, "tensor_parallel_degree": 12}
        assert found(lmi.copy_fits_instance, NEURONX, **fits) == []
        ((_, message, _),) = found(lmi.copy_fits_instance, NEURONX, **fits | {
            "tensor_parallel_degree": 24
        })  # fmt: skip
        assert message == (
            "one copy takes 24 NeuronCores (tensor parallel degree 24 x pipeline parallel degree "
            "1); ml.inf2.24xlarge has 12"
        )

    def test_the_degree_splits_or_copies_key_value_heads(self):
        rule, divides = lmi.degree_fits_key_value_heads, lmi.degree_divides_heads
        qwen = {"attention_heads": 28, "key_value_heads": 4}
        qwen |= {"family": "qwen2", "parameters": 7_615_616_512}
        for degree in (7, 14):
            assert only(found(rule, VLLM, model=qwen, tensor_parallel_degree=degree)) == (
                "serving.tensor_parallel_degree",
                f"4 key/value heads can be neither split over {degree} accelerators nor copied "
                "to each of them equally",
                "Use one of these degrees: 1, 2, 4, 28.",
            )
            assert found(divides, VLLM, model=qwen, tensor_parallel_degree=degree) == []
        for degree in (1, 2, 4, 28):
            assert found(rule, VLLM, model=qwen, tensor_parallel_degree=degree) == []
        # One rule at a time, and no remedy that the other refuses.
        assert found(rule, VLLM, model=qwen, tensor_parallel_degree=3) == []
        ((_, _, remedy),) = found(divides, VLLM, model=qwen, tensor_parallel_degree=3)
        assert remedy == "Use a degree that divides them: 1, 2, 4, 28."

    @pytest.mark.parametrize(
        ("family", "instance", "product", "other"),
        [
            ("llama", "ml.g4dn.xlarge", "NVIDIA T4 (sm75)", "fp16"),
            ("t5", "ml.p3.2xlarge", "NVIDIA V100 (sm70)", "fp32"),
        ],
    )
    def test_bf16_needs_ampere(self, family, instance, product, other):
        rule = lmi.gpu_has_bf16
        given = {"model": {"family": family, "parameters": 1000}, "dtype": "bf16"}
        on = {"instances": [instance, "ml.g5.xlarge"]}
        assert only(found(rule, VLLM, endpoint=on, **given)) == (
            "endpoint.instances[0]",
            f"{instance} has {product}; bf16 needs compute capability 8.0 (sm80) or higher",
            f"Set `dtype: {other}`, or choose a type with a newer GPU, for example `ml.g5.xlarge`.",
        )
        assert found(rule, VLLM, endpoint=on, **{**given, "dtype": "fp16"}) == []
        assert found(rule, NEURONX, **given) == []

    def test_the_engines_limit_holds_the_longest_request(self):
        rule = lmi_options.longest_request_fits
        lengths = {"max_input_tokens": 4000, "max_new_tokens": 200}
        for value, limit in ((4096, 4096), ("4k", 4000), ("4.1k", 4100)):
            assert only(found(rule, VLLM, options={"max_model_len": value}, **lengths)) == (
                "serving.options.max_model_len",
                f"`max_model_len` is {limit}, and a request may have 4200 tokens: 4000 of the "
                "prompt and 200 of the answer",
                "Set `max_model_len` to 4200 or more, or lower `max_input_tokens` or "
                "`max_new_tokens`.",
            )
        for value in (4200, "5k", "auto", -1, True):
            assert found(rule, VLLM, options={"max_model_len": value}, **lengths) == []
        assert found(rule, VLLM, options={"max_model_len": 8}) == []
        assert found(rule, NEURONX, options={"n_positions": 2048}, **lengths) != []

    def test_the_engines_limit_is_within_the_positions(self):
        rule = lmi_options.engine_limit_has_positions
        given = {"model": {"family": "qwen3", "parameters": 1, "positions": 40_960}}
        assert only(found(rule, VLLM, options={"max_model_len": "64k"}, **given)) == (
            "serving.options.max_model_len",
            "`max_model_len` is 64000, and the network has 40960 positions",
            "Set `max_model_len` to 40960 or less, or correct `positions` in `model`.",
        )
        assert found(rule, VLLM, options={"max_model_len": 40_960}, **given) == []
        stretched = {"max_model_len": 131_072, "hf_overrides": "{}"}
        assert found(rule, VLLM, options=stretched, **given) == []
        assert found(rule, VLLM, options={"max_model_len": "64k"}) == []

    def test_the_degree_is_not_above_the_experts(self):
        rule = lmi.degree_fits_experts
        mixtral = {"model": {"family": "mixtral", "parameters": 1, "experts": 8}}
        assert only(found(rule, VLLM, tensor_parallel_degree=16, **mixtral)) == (
            "serving.tensor_parallel_degree",
            "8 experts cannot be spread over 16 accelerators",
            "Use a degree of 8 at most, or correct `experts` in `model`.",
        )
        assert found(rule, VLLM, tensor_parallel_degree=8, **mixtral) == []
        assert found(rule, NEURONX, tensor_parallel_degree=16, **mixtral) == []

    @pytest.mark.parametrize("degree", [12, 24])
    def test_neuron_pads_heads_from_its_sdk_2_14_on(self, degree):
        llama = {"family": "llama", "parameters": 6_738_415_616, "attention_heads": 32}
        rule, given = lmi.degree_divides_heads, {"model": llama, "tensor_parallel_degree": degree}
        for version in ("0.24.0", "0.27.0", "0.29.0"):
            assert found(rule, ("djl-neuronx", version), **given) == []
        assert found(rule, ("djl-neuronx", "0.23.0"), **given) != []
        grouped = llama | {"key_value_heads": 32}
        kept = {**given, "model": grouped}
        assert found(lmi.degree_fits_key_value_heads, NEURONX, **kept) == []

    def test_the_degree_divides_the_heads(self):
        rule, model = lmi.degree_divides_heads, {"attention_heads": 12}
        model |= {"family": "gpt2", "parameters": 1}
        assert only(found(rule, VLLM, model=model, tensor_parallel_degree=8)) == (
            "serving.tensor_parallel_degree",
            "12 attention heads cannot be split over 8 accelerators",
            "Use a degree that divides them: 1, 2, 3, 4, 6, 12.",
        )
        assert found(rule, VLLM, model=model, tensor_parallel_degree=4) == []
        assert found(rule, VLLM, tensor_parallel_degree=7) == []

    def test_a_pipeline_is_for_versions_that_have_one(self):
        rule = lmi.pipeline_is_read
        assert only(found(rule, DEEPSPEED, pipeline_parallel_degree=2)) == (
            "serving.pipeline_parallel_degree",
            "djl-deepspeed 0.27.0 has no pipeline parallelism: it would ignore the degree 2",
            "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
        )
        for image in (FT, VLLM):
            assert found(rule, image, pipeline_parallel_degree=2) == []

    @pytest.mark.parametrize(
        ("image", "on", "serving", "text"),
        [
            (
                VLLM,
                "ml.g5.48xlarge",
                {"tensor_parallel_degree": 3},
                "ml.g5.48xlarge has 8 GPUs: 2 copies of the model with 3 each leave 2 idle.",
            ),
            (
                VLLM,
                "ml.g5.12xlarge",
                {"tensor_parallel_degree": 3},
                "ml.g5.12xlarge has 4 GPUs: 1 copy of the model with 3 each leaves 1 idle.",
            ),
            (
                NEURONX,
                "ml.inf2.24xlarge",
                {"tensor_parallel_degree": 8},
                "ml.inf2.24xlarge has 12 NeuronCores: 1 copy of the model with 8 each leaves 4 "
                "idle.",
            ),
            (
                VLLM,
                "ml.g5.12xlarge",
                {"options": {"enable_lora": True}},
                "ml.g5.12xlarge has 4 GPUs: 1 copy of the model, all that `enable_lora` allows, "
                "with 1 each leaves 3 idle.",
            ),
        ],
    )
    def test_idle_accelerators(self, image, on, serving, text):
        assert warnings(image, on=on, **serving) == [("lmi-accelerators-idle", text)]

    def test_copies_that_fill_the_instance(self):
        for image, serving in [
            (VLLM, {}),
            (VLLM, {"tensor_parallel_degree": 2}),
            (VLLM, {"options": {"enable_lora": False}}),
            # The server started a worker for each device then.
            (("djl-lmi", "0.30.0"), {"rolling_batch": "vllm", "options": {"enable_lora": True}}),
            # A rule refuses this.
            (VLLM, {"tensor_parallel_degree": 16}),
        ]:
            assert warnings(image, **serving) == []
