"""Environment variables of an LMI container: refusals word for word, and configs that pass."""

import pytest

from slipway.planning.families.lmi.rules import options as lmi_options
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, VLLM, found, option
from tests.unit.planning.rule_findings import only


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
