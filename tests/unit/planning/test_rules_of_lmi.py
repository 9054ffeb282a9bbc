"""LMI: each rule and each warning, what it says, word for word, and what it lets pass."""

import dataclasses
import inspect
from typing import Any

import pytest

from slipway.facts.instances import instance_types
from slipway.planning.families.lmi import advice as lmi_advice
from slipway.planning.families.lmi.rules import batching as lmi_batching
from slipway.planning.families.lmi.rules import frameworks as lmi_frameworks
from slipway.planning.families.lmi.rules import options as lmi_options
from slipway.planning.families.lmi.rules import serving as lmi
from tests.support.projects import LOCAL, PRODUCTION
from tests.unit.planning.lmi_findings import (
    DEEPSPEED,
    FT,
    NEURONX,
    TRTLLM,
    VLLM,
    found,
    sections,
    warnings,
)
from tests.unit.planning.rule_findings import findings, own_rules

WEIGHTS = {"source": "s3", "uri": "s3://my-models/flan-t5-xxl/"}
ALL_RULES = (*lmi.RULES, *lmi_batching.RULES, *lmi_options.RULES)


@pytest.mark.parametrize("image", [FT, DEEPSPEED, VLLM, NEURONX, TRTLLM], ids="-".join)
def test_a_plain_config_breaks_no_rule(image):
    for rule in ALL_RULES:
        assert found(rule, image, environment=PRODUCTION) == []


class TestVersions:
    def test_an_unknown_one_is_refused_once(self):
        assert found(own_rules, ("djl-fastertransformer", "0.22.0")) == [
            (
                "serving.version",
                "there is no image of djl-fastertransformer 0.22.0",
                "Did you mean `0.22.1`? There are 0.21.0, 0.22.1, 0.23.0, 0.24.0.",
            )
        ]

    def test_the_newest_is_meant_where_there_is_no_later_one(self):
        ((_, _, remedy),) = found(lmi.lmi_version_exists, ("djl-fastertransformer", "0.36.0"))
        assert remedy == "Did you mean `0.24.0`? There are 0.21.0, 0.22.1, 0.23.0, 0.24.0."

    def test_a_known_one_passes(self):
        assert found(lmi.lmi_version_exists, FT) == []


class TestHandlers:
    @pytest.mark.parametrize("engine", ["python", "PYTHON", "Python "])
    def test_the_case_of_an_engine_matters_and_a_space_after_it(self, engine):
        assert found(lmi.engine_is_accepted, ("djl-lmi", "0.28.0"), engine=engine) == [
            (
                "serving.engine",
                f"djl-lmi 0.28.0 has no engine '{engine}'",
                "Did you mean `Python`? There are MPI, Python; case matters.",
            )
        ]

    @pytest.mark.parametrize(
        ("image", "engine"), [(VLLM, "DeepSpeed"), (DEEPSPEED, "FasterTransformer")]
    )
    def test_an_engine_that_is_gone(self, image, engine):
        ((_, message, _),) = found(lmi.engine_is_accepted, image, engine=engine)
        assert message == f"{' '.join(image)} has no engine '{engine}'"

    def test_engines_that_are_there(self):
        for engine in ("Python", "MPI", "OnnxRuntime"):
            assert found(lmi.engine_is_accepted, VLLM, engine=engine) == []

    def test_an_engine_whose_handler_is_in_another_image(self):
        assert found(lmi.engine_has_handler, FT, engine="DeepSpeed") == [
            (
                "serving.engine",
                "djl-fastertransformer 0.24.0 has no handler for the engine DeepSpeed",
                "Remove `engine`, or choose the framework's image that has it.",
            )
        ]
        assert found(lmi.engine_has_handler, DEEPSPEED, engine="DeepSpeed") == []
        assert found(lmi.engine_has_handler, FT, engine="DeepSpeed", script="mine") == []

    def test_an_entry_point_is_one_of_the_images(self):
        given = {"entry_point": "djl_python.fastertransfomer"}
        assert found(lmi.entry_point_is_built_in, FT, **given) == [
            (
                "serving.entry_point",
                "djl-fastertransformer 0.24.0 has no handler 'djl_python.fastertransfomer'",
                "Did you mean `djl_python.fastertransformer`? There are "
                "djl_python.fastertransformer, djl_python.huggingface; a model.py of your own goes "
                "into `script`.",
            )
        ]
        given = {"entry_point": "djl_python.huggingface"}
        assert found(lmi.entry_point_is_built_in, FT, **given) == []

    def test_there_is_one_handler(self):
        rule = lmi.there_is_one_handler
        assert found(rule, FT, entry_point="djl_python.huggingface", script="mine") == [
            (
                "serving.script",
                "there are two handlers: `entry_point` and `script`",
                "Keep one of them.",
            )
        ]
        assert found(rule, FT, script="mine") == []
        older = ("djl-lmi", "0.28.0")
        ((_, _, remedy),) = found(rule, older, entry_point="djl_python.huggingface", script="mine")
        assert remedy == ("Keep one of them. From 0.29.0 on a model.py may have formatters for it.")
        assert found(rule, VLLM, entry_point="djl_python.huggingface", script="mine") == []
        assert found(rule, VLLM, engine="PyTorch", script="mine") == [
            (
                "serving.script",
                "the engine PyTorch runs no Python, so `script` is not read",
                "Remove it, or use the engine Python.",
            )
        ]

    def test_requirements_are_for_a_built_in_handler(self):
        rule = lmi.requirements_are_installed
        assert found(rule, VLLM, requirements="lists") == []
        assert found(rule, VLLM, requirements="lists", script="mine") == [
            (
                "serving.requirements",
                "`script` has a requirements.txt of its own, and `requirements` names another",
                "Put the packages into mine/requirements.txt, and remove `requirements`.",
            )
        ]
        assert found(rule, VLLM, engine="PyTorch", requirements="lists") == [
            (
                "serving.requirements",
                "the engine PyTorch runs no Python, so `requirements` is not read",
                "Remove it, or use the engine Python.",
            )
        ]


class TestAccelerators:
    def test_gpu_images_need_a_gpu_of_nvidias(self):
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

    def test_neuron_images_need_the_second_generation(self):
        rule = lmi.image_has_its_accelerator
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

    def test_a_copy_fits_every_instance(self):
        on = {"instances": ["ml.g5.48xlarge", "ml.g5.12xlarge"]}
        degrees = {"tensor_parallel_degree": 4, "pipeline_parallel_degree": 2}
        assert found(lmi.copy_fits_instance, FT, endpoint=on, **degrees) == [
            (
                "endpoint.instances[1]",
                "one copy takes 8 GPUs (tensor parallel degree 4 x pipeline parallel degree 2); "
                "ml.g5.12xlarge has 4",
                "Lower the degrees, or choose an instance type with more accelerators.",
            )
        ]
        assert found(lmi.copy_fits_instance, FT, tensor_parallel_degree=4) == []

    def test_of_inferentia_the_cores_count(self):
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
            assert found(rule, VLLM, model=qwen, tensor_parallel_degree=degree) == [
                (
                    "serving.tensor_parallel_degree",
                    f"4 key/value heads can be neither split over {degree} accelerators nor copied "
                    "to each of them equally",
                    "Use one of these degrees: 1, 2, 4, 28.",
                )
            ]
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
        assert found(rule, VLLM, endpoint=on, **given) == [
            (
                "endpoint.instances[0]",
                f"{instance} has {product}; bf16 needs compute capability 8.0 (sm80) or higher",
                f"Set `dtype: {other}`, or choose a type with a newer GPU, for example "
                "`ml.g5.xlarge`.",
            )
        ]
        assert found(rule, VLLM, endpoint=on, **{**given, "dtype": "fp16"}) == []
        assert found(rule, NEURONX, **given) == []

    def test_the_engines_limit_holds_the_longest_request(self):
        rule = lmi_options.longest_request_fits
        lengths = {"max_input_tokens": 4000, "max_new_tokens": 200}
        for value, limit in ((4096, 4096), ("4k", 4000), ("4.1k", 4100)):
            assert found(rule, VLLM, options={"max_model_len": value}, **lengths) == [
                (
                    "serving.options.max_model_len",
                    f"`max_model_len` is {limit}, and a request may have 4200 tokens: 4000 of the "
                    "prompt and 200 of the answer",
                    "Set `max_model_len` to 4200 or more, or lower `max_input_tokens` or "
                    "`max_new_tokens`.",
                )
            ]
        for value in (4200, "5k", "auto", -1, True):
            assert found(rule, VLLM, options={"max_model_len": value}, **lengths) == []
        assert found(rule, VLLM, options={"max_model_len": 8}) == []
        assert found(rule, NEURONX, options={"n_positions": 2048}, **lengths) != []

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
        assert found(rule, VLLM, model=model, tensor_parallel_degree=8) == [
            (
                "serving.tensor_parallel_degree",
                "12 attention heads cannot be split over 8 accelerators",
                "Use a degree that divides them: 1, 2, 3, 4, 6, 12.",
            )
        ]
        assert found(rule, VLLM, model=model, tensor_parallel_degree=4) == []
        assert found(rule, VLLM, tensor_parallel_degree=7) == []

    def test_a_pipeline_is_for_versions_that_have_one(self):
        rule = lmi.pipeline_is_read
        assert found(rule, DEEPSPEED, pipeline_parallel_degree=2) == [
            (
                "serving.pipeline_parallel_degree",
                "djl-deepspeed 0.27.0 has no pipeline parallelism: it would ignore the degree 2",
                "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
            )
        ]
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


class TestWeights:
    def test_the_oldest_server_takes_none_from_s3(self):
        rule, oldest = lmi.weights_can_be_named, ("djl-deepspeed", "0.19.0")
        assert found(rule, oldest, environment=PRODUCTION) == [
            (
                "serving.version",
                "djl-deepspeed 0.19.0 does not copy weights from S3",
                "Use version 0.20.0 or a later one.",
            )
        ]
        assert found(rule, oldest, environment=LOCAL) == []
        assert found(rule, ("djl-deepspeed", "0.20.0"), environment=PRODUCTION) == []

    def test_network_isolation_forbids_the_copy(self):
        rule, isolated = lmi.weights_need_network, {"network_isolation": True}
        given = sections(FT)
        given["endpoint"] |= isolated
        weights = {"artifacts": {"weights": WEIGHTS}}
        expected = [
            (
                "endpoint.network_isolation",
                "the container copies the weights from S3 itself, which network isolation forbids",
                "Set `network_isolation: false` in `endpoint`.",
            )
        ]
        assert findings(rule, PRODUCTION, **given, **weights) == expected
        assert findings(rule, PRODUCTION, **given) == expected
        # Where variables may say the settings, SageMaker can bring the weights.
        newer = sections(("djl-lmi", "0.36.0"))
        newer["endpoint"] |= isolated
        (found_there,) = findings(rule, PRODUCTION, **newer, **weights)
        assert found_there[2] == (
            "Set `network_isolation: false` in `endpoint`, or `configuration: environment` in "
            "`serving`: SageMaker brings the weights then."
        )
        newer["serving"] |= {"configuration": "environment"}
        assert findings(rule, PRODUCTION, **newer, **weights) == []
        # A sample is packaged whole.
        assert findings(rule, LOCAL, **given, **weights) == []
        assert findings(rule, PRODUCTION, **given, artifacts={"weights": None}) == []
        assert found(rule, FT, environment=PRODUCTION) == []


class TestTimeouts:
    def test_loading_ends_before_sagemaker_gives_up(self):
        rule = lmi.loading_ends_in_time
        assert found(rule, FT, model_loading_timeout_seconds=1201) == [
            (
                "serving.model_loading_timeout_seconds",
                "the model may load for 1201 s, and SageMaker ends the start after 1200 s",
                "Lower `model_loading_timeout_seconds` to 1200 or less, or raise "
                "`endpoint.container_startup_health_check_timeout_seconds`.",
            )
        ]
        assert found(rule, FT, model_loading_timeout_seconds=1200) == []
        assert found(rule, FT) == []

    def test_predictions_end_before_sagemaker_does(self):
        rule = lmi.predictions_end_in_time
        assert found(rule, FT, predict_timeout_seconds=61) == [
            (
                "serving.predict_timeout_seconds",
                "a prediction may take 61 s, and SageMaker ends realtime requests after 60 s",
                "Lower `predict_timeout_seconds` to 60 or less, or use `mode: async`.",
            )
        ]
        assert found(rule, FT, predict_timeout_seconds=60) == []
        later = {
            "mode": "async",
            "async_inference": {"input": "s3://requests/", "output": "s3://answers/"},
        }
        assert found(rule, FT, endpoint=later, predict_timeout_seconds=900) == []


@pytest.mark.parametrize(
    ("image", "options"),
    [
        (("djl-deepspeed", "0.23.0"), {"output_formatter": "jsonlines"}),
        # From 0.27 on a request asks for its stream, and the formatter is for one that does not.
        (("djl-lmi", "0.32.0"), {}),
        (("djl-lmi", "0.32.0"), {"output_formatter": "jsonlines"}),
    ],
)
def test_streaming_with_a_rolling_batch_breaks_no_rule(image, options):
    for rule in (*ALL_RULES, *lmi_frameworks.RULES):
        assert found(rule, image, rolling_batch="vllm", options=options) == []


def family(name: str) -> dict[str, Any]:
    return {"family": name, "parameters": 1000}


class TestFamilies:
    def test_handlers_that_refuse_what_they_do_not_know(self):
        rule, old = lmi.family_is_supported, ("djl-deepspeed", "0.21.0")
        assert found(rule, old, model=family("llama")) == [
            (
                "model.family",
                "djl_python.deepspeed of djl-deepspeed 0.21.0 takes no model of the family llama",
                "It takes roberta, xlm-roberta, gpt2, bert, gpt_neo, gptj, opt, gpt_neox, bloom; "
                "choose another version or framework.",
            )
        ]
        for name in ("gptj", "xlm_roberta", "other"):
            assert found(rule, old, model=family(name)) == []
        assert found(rule, DEEPSPEED, model=family("t5")) == []
        ((_, message, _),) = found(rule, ("djl-neuronx", "0.23.0"), model=family("t5"))
        assert message == (
            "djl_python.transformers-neuronx of djl-neuronx 0.23.0 takes no model of the family t5"
        )

    def test_smoothquant_is_for_some(self):
        rule, quantized = lmi.family_is_supported, {"options": {"quantize": "smoothquant"}}
        ((_, message, _),) = found(rule, DEEPSPEED, model=family("opt"), **quantized)
        assert message == (
            "djl_python.deepspeed of djl-deepspeed 0.27.0 with `quantize: smoothquant` takes no "
            "model of the family opt"
        )
        assert found(rule, DEEPSPEED, model=family("gptj"), **quantized) == []
        assert found(rule, DEEPSPEED, model=family("opt")) == []

    def test_families_that_only_run_are_warned_of(self):
        assert warnings(DEEPSPEED, family="t5") == [
            (
                "lmi-family-without-kernels",
                "djl_python.deepspeed of djl-deepspeed 0.27.0 has no fast kernels for the family "
                "t5; it has for roberta, xlm-roberta, gpt2, bert, gpt_neo, gptj, opt, gpt_neox, "
                "bloom, llama.",
            )
        ]
        assert warnings(FT, family="llama") == [
            (
                "lmi-family-not-detected",
                "djl_python.fastertransformer of djl-fastertransformer 0.24.0 is not what DJL "
                "Serving would choose for the family llama: it takes it for bloom, gpt_neox, gpt2, "
                "t5, opt, gptj. Try the model before you rely on it.",
            )
        ]
        for image, name in [(DEEPSPEED, "llama"), (FT, "t5"), (FT, "other"), (VLLM, "llama")]:
            assert warnings(image, family=name) == []

    def test_batches_that_mix_answers(self):
        rule, mixing = lmi.answers_are_not_mixed, ("djl-fastertransformer", "0.23.0")
        assert found(rule, mixing, max_batch_size=4) == [
            (
                "serving.max_batch_size",
                "djl-fastertransformer 0.23.0 with batches of 4: every request of a batch gets the "
                "answer of the first",
                "Set `max_batch_size: 1`, or use another version.",
            )
        ]
        assert found(rule, mixing) == []
        assert found(rule, FT, max_batch_size=4) == []
        other = {"entry_point": "djl_python.huggingface"}
        assert found(rule, mixing, max_batch_size=4, **other) == []

    def test_the_back_end_of_pytorch(self):
        rule, image = lmi.pytorch_backend_starts, ("djl-tensorrtllm", "0.33.0")
        assert found(rule, image, options={"backend": "pytorch"}) == [
            (
                "serving.options.backend",
                "`backend: pytorch` on djl-tensorrtllm 0.33.0: no worker gets ready, for the "
                "handler names a setting of TensorRT-LLM, enable_overlap_scheduler, that has had "
                "another name since May 2025",
                "Remove it: an engine is built of the weights, or compile them ahead of time.",
            )
        ]
        assert found(rule, image) == []
        assert found(rule, image, options={"backend": "tensorrt"}) == []
        assert found(rule, TRTLLM, options={"backend": "pytorch"}) == []

    def test_t5_in_fp16(self):
        rule, t5 = lmi.t5_is_not_in_fp16, family("t5")
        assert found(rule, FT, model=t5, dtype="fp16") == [
            (
                "serving.dtype",
                "T5 in fp16 on djl-fastertransformer 0.24.0: degraded text; fp32 and bf16 are fine",
                "Set `dtype: fp32` or `dtype: bf16`.",
            )
        ]
        for dtype in ("fp32", "bf16"):
            assert found(rule, FT, model=t5, dtype=dtype) == []
        assert found(rule, FT, model=family("gpt2"), dtype="fp16") == []
        assert found(rule, VLLM, model=t5, dtype="fp16") == []


def test_every_rule_and_warning_is_listed():
    for module, listed in [
        (lmi, lmi.RULES),
        (lmi_batching, lmi_batching.RULES),
        (lmi_options, lmi_options.RULES),
        (lmi_advice, lmi_advice.ADVICE),
    ]:
        functions = {
            name
            for name, value in vars(module).items()
            if inspect.isfunction(value)
            and value.__module__ == module.__name__
            and inspect.isgeneratorfunction(value)
        }
        assert {entry.__name__ for entry in listed} == functions
