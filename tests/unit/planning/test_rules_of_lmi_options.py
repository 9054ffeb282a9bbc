"""LMI's options and variables: refusals and advice word for word, and configs that pass."""

import pytest

from slipway.planning.families.lmi.rules import batching as lmi_batching
from slipway.planning.families.lmi.rules import options as lmi_options
from slipway.planning.partial import rules_of
from tests.unit.planning.lmi_findings import (
    DEEPSPEED,
    FT,
    NEURONX,
    TRTLLM,
    VLLM,
    found,
    option,
    warnings,
)
from tests.unit.planning.rule_findings import only


class TestOptions:
    @pytest.mark.parametrize(
        ("key", "field"),
        [
            ("dtype", "serving.dtype"),
            ("model_id", "artifacts.weights"),
            ("tensor_parallel_degree", "serving.tensor_parallel_degree"),
            ("max_num_seqs", "serving.max_rolling_batch_size"),
            ("tensor_parallel_size", "serving.tensor_parallel_degree"),
            ("batch_size", "serving.max_batch_size"),
            ("job_queue_size", "serving.max_queue_length"),
            ("entryPoint", "serving.entry_point"),
            ("env", "serving.environment"),
        ],
    )
    def test_what_has_a_field_is_said_there(self, key, field):
        assert option(lmi_options.options_have_no_field, VLLM, key, "1") == [
            (f"`{key}` has a field of its own: `{field}`", f"Set `{field}` and remove the option.")
        ]
        # One thing is wrong, not two.
        for rule in rules_of(lmi_options)[1:]:
            assert option(rule, VLLM, key, "1") == []

    def test_the_size_that_neuron_compiles_has_no_field(self):
        assert option(lmi_options.options_have_no_field, NEURONX, "batch_size", 4) == []
        assert option(lmi_options.option_values_fit, NEURONX, "batch_size", 4) == []

    def test_neurons_handler_serves_stable_diffusion_too(self):
        for version in ("0.23.0", "0.27.0"):
            image = ("djl-neuronx", version)
            for rule in rules_of(lmi_options):
                assert option(rule, image, "use_stable_diffusion", True) == [], rule.__name__
            ((message, _),) = option(
                lmi_options.option_values_fit, image, "use_stable_diffusion", False
            )
            assert message.startswith("any value of `use_stable_diffusion` switches it on")

    def test_a_diffusion_model_on_neurons_handler_has_the_other_handlers_options(self):
        image, rule = ("djl-neuronx", "0.27.0"), lmi_options.options_are_known
        assert option(rule, image, "height", 768) != []
        options = {"use_stable_diffusion": True, "height": 768}
        assert found(rule, image, options=options) == []
        assert found(lmi_batching.dtype_is_accepted, image, dtype="bf16", options=options) == []
        assert [field for field, *_ in found(lmi_batching.dtype_is_accepted, image, dtype="fp16",
                                             options=options)] == ["serving.dtype"]  # fmt: skip

    @pytest.mark.parametrize("value", [True, "True", "FALSE", "huggingface"])
    def test_handlers_make_small_letters_of_true_and_false(self, value):
        image = ("djl-deepspeed", "0.23.0")
        given = {"engine": "Python", "options": {"enable_streaming": value}}
        assert found(lmi_options.option_values_fit, image, **given) == []
        assert found(lmi_options.option_values_fit, image, engine="Python",
                     options={"enable_streaming": "Huggingface"}) != []  # fmt: skip

    def test_keys_of_the_server_are_taken_and_checked(self):
        assert option(lmi_options.options_have_no_field, VLLM, "minWorkers", 2) == []
        rule = lmi_options.option_values_fit
        assert option(rule, VLLM, "load_on_devices", "0;1") == []
        assert only(option(rule, VLLM, "gpu.reserved_memory_mb", -1)) == (
            "`gpu.reserved_memory_mb` is a whole number of 0 or more, not -1",
            "Set `gpu.reserved_memory_mb` to a whole number of 0 or more.",
        )
        ((message, _),) = option(
            lmi_options.options_have_no_field, VLLM, "max_dynamic_batch_size", 4
        )
        assert message.endswith("has a field of its own: `serving.max_batch_size`")
        assert option(lmi_options.options_are_known, VLLM, "minWorkers", 2) == []

    def test_options_are_known(self):
        rule = lmi_options.options_are_known
        assert only(option(rule, VLLM, "gpu_memory_utilisation", 0.9)) == (
            "djl_python.lmi_vllm.vllm_async_service of djl-lmi 0.36.0 reads no option "
            "'gpu_memory_utilisation'",
            "Did you mean `gpu_memory_utilization`? The server would ignore it without a warning.",
        )
        assert only(option(rule, FT, "quite_something_else", 1)) == (
            "djl_python.fastertransformer of djl-fastertransformer 0.24.0 reads no option "
            "'quite_something_else'",
            "The server would ignore it without a warning.",
        )
        assert option(rule, VLLM, "gpu_memory_utilization", 0.9) == []
        # Handlers that pass everything on.
        assert option(rule, TRTLLM, "max_new_thing", 1) == []
        assert option(rule, FT, "flavour", "plain", script="mine") == []
        assert option(rule, VLLM, "flavour", "plain", engine="PyTorch") == []
        # Keys of another version are not known.
        assert option(rule, ("djl-fastertransformer", "0.21.0"), "enable_streaming", "true") != []
        assert option(rule, FT, "enable_streaming", "true", engine="Python") == []

    def test_options_are_read(self):
        rule = lmi_options.options_are_read
        assert only(option(rule, FT, "enable_streaming", "true")) == (
            "`enable_streaming` is read with the engine Python, not with FasterTransformer",
            "Remove it, or change the setting that it belongs to.",
        )
        python = {"engine": "Python", "entry_point": "djl_python.fastertransformer"}
        assert option(rule, FT, "enable_streaming", "true", **python) == []
        rule, image = lmi_options.options_are_read, ("djl-lmi", "0.30.0")
        key = "decoding_strategy"
        assert only(option(rule, image, key, "greedy", rolling_batch="vllm")) == (
            "`decoding_strategy` is read with the rolling batch scheduler, not with vllm",
            "Remove it, or change the setting that it belongs to.",
        )
        assert only(option(rule, image, key, "greedy", max_batch_size=2)) == (
            "`decoding_strategy` is read with the rolling batch scheduler, and there is none",
            "Remove it, or change the setting that it belongs to.",
        )
        assert option(rule, image, key, "greedy", rolling_batch="scheduler") == []
        # `auto` may turn out to be any of them.
        assert option(rule, image, key, "greedy") == []

    def test_two_names_of_one_option(self):
        rule = lmi_options.options_are_said_once
        both = {"quantize": "awq", "quantization": "awq"}
        assert only(found(rule, VLLM, options=both)) == (
            "serving.options.quantization",
            "`quantization` and `quantize` are one option",
            "Keep one of them.",
        )
        for key, value in both.items():
            assert option(rule, VLLM, key, value) == []

    @pytest.mark.parametrize(
        ("image", "key", "bad", "wanted", "shown", "good"),
        [
            (DEEPSPEED, "max_tokens", "many", "a whole number of 1 or more", "'many'", [1, "7"]),
            (DEEPSPEED, "max_tokens", 0, "a whole number of 1 or more", "0", [1024]),
            (DEEPSPEED, "max_tokens", True, "a whole number of 1 or more", "true", [2]),
            (DEEPSPEED, "max_tokens", 2.5, "a whole number of 1 or more", "2.5", [2]),
            (DEEPSPEED, "smoothquant_alpha", 1.1, "a number from 0 to 1", "1.1", [0, 0.5, 1]),
            (DEEPSPEED, "smoothquant_alpha", "nan", "a number from 0 to 1", "'nan'", ["0.5"]),
            (DEEPSPEED, "return_tuple", "yes", "true or false", "'yes'", [True, "false", "True"]),
            (DEEPSPEED, "return_tuple", 1, "true or false", "1", [False]),
            (
                DEEPSPEED, "quantize", "awq", "one of smoothquant, dynamic_int8", "'awq'",
                ["dynamic_int8"],
            ),
            (DEEPSPEED, "enable_streaming", 1, "one of true, false, huggingface", "1", [True]),
            (
                NEURONX, "context_length_estimate", "64;128",
                "a list of whole numbers, separated by commas", "'64;128'", [64, "64, 128"],
            ),
            (
                ("djl-lmi", "0.31.0"), "long_lora_scaling_factors", "1.0,two",
                "a list of numbers, separated by commas", "'1.0,two'", [1.5, "1.0,2"],
            ),
            (
                ("djl-lmi", "0.31.0"), "limit_mm_per_prompt", "image",
                "a list of KEY=VALUE, separated by commas", "'image'", ["image=2,audio=1"],
            ),
            (
                ("djl-neuronx", "0.24.0"), "context_length_estimate", "[64, 128", "JSON",
                "'[64, 128'", ["[64, 128]"],
            ),
        ],
    )  # fmt: skip
    def test_values(self, image, key, bad, wanted, shown, good):
        rule = lmi_options.option_values_fit
        assert option(rule, image, key, bad) == [
            (f"`{key}` is {wanted}, not {shown}", f"Set `{key}` to {wanted}.")
        ]
        for value in good:
            assert option(rule, image, key, value) == []

    def test_option_values_fit(self):
        rule = lmi_options.option_values_fit
        ((message, _),) = option(
            rule, ("djl-neuronx", "0.24.0"), "context_length_estimate", "[" * 100_000
        )
        assert message.startswith("`context_length_estimate` is JSON, not ")
        assert option(rule, DEEPSPEED, "revision", 12_300_000_000) == [
            ("`revision` is a text, not 12300000000", "Write it in quotes.")
        ]
        assert option(rule, DEEPSPEED, "revision", "123e8") == []
        # What no source says is not checked.
        assert option(lmi_options.option_values_fit, VLLM, "attention_backend", "sixteen") == []
        ((message, remedy),) = option(rule, VLLM, "quantization", "fp8x")
        assert message.startswith("`quantization` is one of awq, fp8, fbgemm_fp8, ")
        assert message.endswith(", not 'fp8x'")
        assert remedy == "Did you mean `fp8`?"
        ((message, remedy),) = option(rule, VLLM, "max_lora_rank", 17)
        assert message == "`max_lora_rank` is one of 1, 8, 16, 32, 64, 128, 256, 320, 512, not 17"
        assert remedy == "Set `max_lora_rank` to one of these."
        assert option(rule, ("djl-lmi", "0.38.0"), "quantization", "deepspeedfp") != []
        assert option(rule, ("djl-lmi", "0.34.0"), "quantization", "deepspeedfp") == []
        rule, image = lmi_options.option_values_fit, ("djl-deepspeed", "0.22.1")
        serving = {"entry_point": "djl_python.huggingface"}
        for value in (False, "False"):
            assert only(option(rule, image, "load_in_8bit", value, **serving)) == (
                "any value of `load_in_8bit` switches it on in djl-deepspeed 0.22.1, even false",
                "Remove it: without the option it is off.",
            )
        assert option(rule, image, "load_in_8bit", True, **serving) == []
        later = ("djl-deepspeed", "0.23.0")
        assert option(rule, later, "load_in_8bit", False, **serving) == []

    @pytest.mark.parametrize(
        ("key", "value", "wanted"),
        [
            ("gpu_memory_utilization", 90, "a number from 0 to 1, not 90"),
            ("max_model_len", "lots", "a whole number, such as 4096 or 4k, or auto, not 'lots'"),
            ("max_model_len", "1.5K", "a whole number, such as 4096 or 4k, or auto, not '1.5K'"),
            ("enforce_eager", "maybe", "true or false, not 'maybe'"),
            ("seed", 1.5, "a whole number, not 1.5"),
            ("stream_interval", 0, "a whole number of 1 or more, not 0"),
        ],
    )
    def test_the_values_of_vllms_arguments(self, key, value, wanted):
        ((message, remedy),) = option(lmi_options.option_values_fit, VLLM, key, value)
        assert message == f"`{key}` is {wanted}"
        assert remedy == f"Set `{key}` to {wanted.rpartition(', not')[0]}."

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("gpu_memory_utilization", "5e-1"),
            ("max_model_len", "25.6k"),
            ("max_model_len", "auto"),
            ("enforce_eager", "True"),
            ("max_lora_rank", "64"),
            ("quantization", "compressed-tensors"),
        ],
    )
    def test_values_that_vllm_takes(self, key, value):
        assert option(lmi_options.option_values_fit, VLLM, key, value) == []

    def test_outdated_ones_are_warned_of(self):
        given = {"entry_point": "djl_python.huggingface", "options": {"load_in_8bit": True}}
        assert only(warnings(DEEPSPEED, **given)) == (
            "lmi-option-deprecated",
            "`load_in_8bit` is deprecated in djl-deepspeed 0.27.0: use quantize=bitsandbytes8.",
        )
        assert warnings(("djl-deepspeed", "0.24.0"), **given) == []

    def test_what_a_handler_passes_on_unread_is_warned_of(self):
        image, given = ("djl-tensorrtllm", "0.30.0"), {"rolling_batch": "trtllm"}
        found = warnings(image, **given, options={"max_inptu_len": 512, "max_input_len": 512})
        (message,) = [text for code, text in found if code == "lmi-option-unchecked"]
        assert message.startswith("`max_inptu_len` is on no list of options: ")
        assert message.endswith(
            "passes it on, and where nothing reads it, the server ignores it without a warning. "
            "Did you mean `max_input_len`?"
        )


class TestEnvironment:
    @pytest.mark.parametrize(
        ("image", "name", "message", "remedy"),
        [
            (
                VLLM, "HF_MODEL_ID",
                "`HF_MODEL_ID` names models, beside the one that is packaged",
                "Remove it: the weights are those of `artifacts`.",
            ),
            (
                VLLM, "SERVING_LOAD_MODELS",
                "`SERVING_LOAD_MODELS` names models, beside the one that is packaged",
                "Remove it: the weights are those of `artifacts`.",
            ),
            (
                VLLM, "DJL_ENTRY_POINT",
                "`DJL_ENTRY_POINT` would replace the handler that the options are checked against",
                "Set `serving.entry_point` and remove the variable.",
            ),
            (
                FT, "TENSOR_PARALLEL_DEGREE",
                "`TENSOR_PARALLEL_DEGREE` has a field of its own: `serving.tensor_parallel_degree`",
                "Set `serving.tensor_parallel_degree` and remove the variable.",
            ),
            (
                VLLM, "SERVING_JOB_QUEUE_SIZE",
                "`SERVING_JOB_QUEUE_SIZE` has a field of its own: `serving.max_queue_length`",
                "Set `serving.max_queue_length` and remove the variable.",
            ),
            (
                VLLM, "OPTION_MAX_MODEL_LEN",
                "`OPTION_MAX_MODEL_LEN` is an option that nothing checks, and serving.properties "
                "wins over it",
                "Set `serving.options.max_model_len` and remove the variable.",
            ),
            (
                VLLM, "OPTION_ENTRYPOINT",
                "`OPTION_ENTRYPOINT` is an option that nothing checks, and serving.properties wins "
                "over it",
                "Set `serving.entry_point` and remove the variable.",
            ),
            (
                ("djl-deepspeed", "0.22.1"), "OPTION_TASK",
                "`OPTION_TASK` is not read by djl-deepspeed 0.22.1",
                "Set `serving.options.task` and remove the variable.",
            ),
        ],
    )  # fmt: skip
    def test_variables_that_speak_over_the_file(self, image, name, message, remedy):
        rule = lmi_options.environment_leaves_the_file_alone
        assert found(rule, image, variables={name: "1"}) == [
            (f"serving.environment.{name}", message, remedy)
        ]

    def test_other_variables_are_the_users(self):
        rule = lmi_options.environment_leaves_the_file_alone
        given = {"HF_TOKEN": "hf_x", "OMP_NUM_THREADS": "4", "SERVING_MAX_WORKERS": "1"}
        assert found(rule, VLLM, variables=given) == []

    @pytest.mark.parametrize("image", [VLLM, ("djl-lmi", "0.28.0"), ("djl-neuronx", "0.30.0")])
    def test_the_server_can_be_told_to_fail_fast(self, image):
        rule = lmi_options.server_variables_are_read
        for value in ("true", "false", "True"):
            assert found(rule, image, variables={"SERVING_FAIL_FAST": value}) == []

    def test_server_variables_are_read(self):
        rule, variables = lmi_options.server_variables_are_read, {"SERVING_FAIL_FAST": "true"}
        field = "serving.environment.SERVING_FAIL_FAST"
        assert only(found(rule, ("djl-neuronx", "0.27.0"), variables=variables)) == (
            field,
            "djl-neuronx 0.27.0 does not read the variable `SERVING_FAIL_FAST`",
            "Remove it, or use version 0.28.0 or a later one.",
        )
        # No image of this framework does.
        ((_, _, remedy),) = found(rule, DEEPSPEED, variables=variables)
        assert remedy == "Remove it."
        variables = {"SERVING_FAIL_FAST": "1"}
        assert only(found(lmi_options.server_variables_are_read, VLLM, variables=variables)) == (
            "serving.environment.SERVING_FAIL_FAST",
            "`SERVING_FAIL_FAST` is true or false, not '1'",
            "Set `SERVING_FAIL_FAST` to true or false.",
        )

    def test_failing_fast_is_no_option(self):
        rule = lmi_options.options_are_known
        assert only(option(rule, VLLM, "fail_fast", True)) == (
            "djl_python.lmi_vllm.vllm_async_service of djl-lmi 0.36.0 reads no option 'fail_fast'",
            "Set `serving.environment.SERVING_FAIL_FAST` instead of the option. The server "
            "would ignore it without a warning.",
        )
        ((_, remedy),) = option(rule, DEEPSPEED, "fail_fast", True)
        assert "SERVING_FAIL_FAST" not in remedy
