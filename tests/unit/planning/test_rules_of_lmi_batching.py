"""LMI's precision, batches and rolling batches: refusals word for word, and configs that pass."""

import pytest

from slipway.planning.families.lmi.rules import batching as lmi_batching
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, TRTLLM, VLLM, found, warnings
from tests.unit.planning.rule_findings import only


class TestBatching:
    def test_dtype_is_accepted(self):
        rule = lmi_batching.dtype_is_accepted
        assert only(found(rule, VLLM, dtype="int8", rolling_batch="vllm")) == (
            "serving.dtype",
            "djl_python.huggingface of djl-lmi 0.36.0 does not load weights in int8",
            "Use one of fp32, fp16, bf16.",
        )
        ((_, message, _),) = found(rule, FT, dtype="fp8")
        assert message == (
            "djl_python.fastertransformer of djl-fastertransformer 0.24.0 does not load weights in "
            "fp8"
        )
        assert found(rule, FT, dtype="int8") == []
        # No source gives a list, and of one's own handler nothing is known.
        assert found(rule, TRTLLM, dtype="fp8") == []
        assert found(rule, FT, dtype="fp8", script="mine") == []
        rule, first = lmi_batching.dtype_is_accepted, ("djl-deepspeed", "0.19.0")
        ((_, message, remedy),) = found(rule, first, dtype="bf16")
        assert message.endswith("0.19.0 does not load weights in bf16")
        assert remedy == "Use one of fp32, fp16."
        assert found(rule, first, dtype="fp16") == []

    def test_trusting_code_that_is_never_run(self):
        rule, trust = lmi_batching.remote_code_can_be_trusted, {"trust_remote_code": True}
        assert only(found(rule, ("djl-fastertransformer", "0.23.0"), **trust)) == (
            "serving.trust_remote_code",
            "djl_python.fastertransformer of djl-fastertransformer 0.23.0 cannot run a "
            "checkpoint's own code",
            "Remove `trust_remote_code`, or choose a later version.",
        )
        for image in (FT, VLLM, TRTLLM):
            assert found(rule, image, **trust) == []

    def test_rolling_batch_is_known(self):
        rule = lmi_batching.rolling_batch_is_known
        assert only(found(rule, FT, rolling_batch="auto")) == (
            "serving.rolling_batch",
            "djl_python.fastertransformer of djl-fastertransformer 0.24.0 has no rolling batch",
            "Remove `rolling_batch`, or set `max_batch_size`.",
        )
        assert found(rule, FT, rolling_batch="auto", script="mine") == []
        assert only(found(rule, VLLM, rolling_batch="vlm")) == (
            "serving.rolling_batch",
            "djl_python.huggingface of djl-lmi 0.36.0 has no rolling batch 'vlm'",
            "Did you mean `vllm`? There are auto, vllm, disable.",
        )
        ((_, message, _),) = found(rule, VLLM, rolling_batch="lmi-dist")
        assert message.endswith("has no rolling batch 'lmi-dist'")
        for batch in ("auto", "vllm", "disable"):
            assert found(rule, VLLM, rolling_batch=batch) == []
        assert found(rule, ("djl-lmi", "0.32.0"), rolling_batch="lmi-dist") == []
        image, serving = ("djl-tensorrtllm", "0.27.0"), {"entry_point": "djl_python.huggingface"}
        ((_, message, remedy),) = found(
            lmi_batching.rolling_batch_is_known, image, rolling_batch="vllm", **serving
        )
        assert message == (
            "djl_python.huggingface of djl-tensorrtllm 0.27.0 has no rolling batch 'vllm'"
        )
        assert remedy == (
            "It is in djl-deepspeed and djl-neuronx of that version. There are auto, disable."
        )

    def test_a_rolling_batch_needs_its_engine(self):
        rule = lmi_batching.rolling_batch_fits_engine
        assert only(found(rule, DEEPSPEED, rolling_batch="vllm", engine="MPI")) == (
            "serving.engine",
            "rolling batch vllm of djl-deepspeed 0.27.0 does not run on the engine MPI",
            "Set `engine: Python`.",
        )
        ((_, _, remedy),) = found(rule, DEEPSPEED, rolling_batch="lmi-dist", engine="Python")
        assert remedy == "Set `engine: MPI`."
        for batch in ("vllm", "lmi-dist", "scheduler", "deepspeed"):
            assert found(rule, DEEPSPEED, rolling_batch=batch) == []

    def test_batches_are_of_one_kind(self):
        rule = lmi_batching.batches_are_of_one_kind
        assert only(found(rule, VLLM, rolling_batch="vllm", max_batch_size=8)) == (
            "serving.max_batch_size",
            "batches of 8 turn the rolling batch vllm off",
            "Remove `max_batch_size`; `max_rolling_batch_size` is the rolling batch's. Or "
            "remove `rolling_batch`.",
        )
        assert found(rule, VLLM, rolling_batch="vllm") == []
        assert found(rule, VLLM, max_batch_size=8) == []
        assert found(rule, VLLM, rolling_batch="disable", max_batch_size=8) == []

    @pytest.mark.parametrize(
        ("image", "serving"),
        [
            (FT, {}),
            (("djl-deepspeed", "0.24.0"), {"entry_point": "djl_python.huggingface"}),
            (("djl-lmi", "0.32.0"), {"rolling_batch": "disable"}),
            (("djl-lmi", "0.32.0"), {"max_batch_size": 2}),
        ],
    )
    def test_a_size_without_a_rolling_batch(self, image, serving):
        rule = lmi_batching.rolling_batch_size_is_read
        assert only(found(rule, image, max_rolling_batch_size=8, **serving)) == (
            "serving.max_rolling_batch_size",
            "there is no rolling batch for `max_rolling_batch_size` to limit",
            "Set `rolling_batch`, or remove `max_rolling_batch_size`.",
        )
        assert found(rule, image, **serving) == []

    @pytest.mark.parametrize(
        ("image", "serving"),
        [
            (("djl-lmi", "0.32.0"), {}),
            (VLLM, {}),
            (VLLM, {"rolling_batch": "vllm"}),
            (FT, {"script": "mine"}),
            (TRTLLM, {}),
        ],
    )
    def test_a_size_of_a_rolling_batch(self, image, serving):
        rule = lmi_batching.rolling_batch_size_is_read
        assert found(rule, image, max_rolling_batch_size=8, **serving) == []

    def test_batch_settings_are_read(self):
        rule, oldest = lmi_batching.batch_settings_are_read, ("djl-deepspeed", "0.20.0")
        assert found(rule, oldest, max_batch_size=4, max_queue_length=10) == [
            (
                "serving.max_batch_size",
                "djl-deepspeed 0.20.0 does not read `batch_size` from serving.properties",
                "Remove `max_batch_size`, or use a later version.",
            ),
            (
                "serving.max_queue_length",
                "djl-deepspeed 0.20.0 does not read `job_queue_size` from serving.properties",
                "Remove `max_queue_length`, or use a later version.",
            ),
        ]
        assert found(rule, oldest) == []
        assert found(rule, FT, max_batch_size=4, max_queue_length=10) == []
        rule, delay = lmi_batching.batch_settings_are_read, {"max_batch_delay_milliseconds": 20}
        assert only(found(rule, FT, **delay)) == (
            "serving.max_batch_delay_milliseconds",
            "batches of one request have no delay",
            "Set `max_batch_size`, or remove `max_batch_delay_milliseconds`.",
        )
        assert found(rule, FT, max_batch_size=2, **delay) == []


class TestRollingBatch:
    @pytest.mark.parametrize("given", [{}, {"entry_point": "djl_python.huggingface"}])
    def test_the_old_handler_of_vllm_is_warned_of(self, given):
        ((code, message),) = warnings(("djl-lmi", "0.36.0"), rolling_batch="vllm", **given)
        assert code == "lmi-rolling-batch-fails-together"
        assert message == (
            "`rolling_batch: vllm` has djl_python.huggingface drive vLLM: a request refused "
            "while others are answered ends their answers, and every later one, with /ping 200. "
            "Leave it and `entry_point` out: the image's own handler for vLLM does not."
        )

    @pytest.mark.parametrize(
        ("version", "given"),
        [
            ("0.36.0", {}),
            ("0.36.0", {"entry_point": "djl_python.huggingface", "rolling_batch": "disable"}),
            # There it is the default, and leaving it out changes nothing.
            ("0.34.0", {"rolling_batch": "vllm"}),
            # There the asynchronous handler is taken all the same.
            ("0.33.0", {"rolling_batch": "vllm"}),
        ],
    )
    def test_and_no_other(self, version, given):
        assert warnings(("djl-lmi", version), **given) == []
