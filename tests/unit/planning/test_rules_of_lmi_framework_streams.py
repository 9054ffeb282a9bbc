"""Streamed answers of LMI's frameworks: refusals word for word, and configs that pass."""

import pytest

from slipway.planning.deployment import Rule
from slipway.planning.families.lmi.rules import frameworks as lmi_frameworks
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, NEURONX, TRTLLM, VLLM, found
from tests.unit.planning.lmi_older_images import (
    ACCELERATE,
    DEEPSPEED_022,
    DEEPSPEED_023,
    FT_022,
    LMI_032,
    READER,
)
from tests.unit.planning.rule_findings import only


class TestStreaming:
    rule: Rule = staticmethod(lmi_frameworks.streaming_option_has_an_effect)

    @pytest.mark.parametrize(
        ("image", "serving", "reader"),
        [
            (LMI_032, {"rolling_batch": "vllm"}, "djl_python.huggingface of djl-lmi 0.32.0"),
            (LMI_032, {}, "djl_python.huggingface of djl-lmi 0.32.0"),
            (
                DEEPSPEED,
                {"rolling_batch": "deepspeed"},
                "djl_python.deepspeed of djl-deepspeed 0.27.0",
            ),
            (
                NEURONX,
                {"rolling_batch": "auto"},
                "djl_python.transformers_neuronx of djl-neuronx 0.27.0",
            ),
        ],
    )
    def test_a_rolling_batch_streams_what_the_request_asks_for(self, image, serving, reader):
        for value in (True, "true", "huggingface"):
            options = {"enable_streaming": value}
            assert only(found(self.rule, image, options=options, **serving)) == (
                "serving.options.enable_streaming",
                f"with a rolling batch {reader} does not stream by `enable_streaming`",
                'Remove it: a request with `"stream": true` is streamed.',
            )

    def test_streaming_option_has_an_effect(self):
        options = {"enable_streaming": "true"}
        assert only(found(self.rule, DEEPSPEED_023, rolling_batch="vllm", options=options)) == (
            "serving.options.enable_streaming",
            "with a rolling batch djl_python.huggingface of djl-deepspeed 0.23.0 does not "
            "stream by `enable_streaming`",
            "Remove it, and set `output_formatter: jsonlines`.",
        )
        image, options = ("djl-deepspeed", "0.25.0"), {"enable_streaming": "true"}
        ((_, _, remedy),) = found(self.rule, image, rolling_batch="deepspeed", options=options)
        assert remedy == "Remove it."
        # What no handler reads is refused by another rule.
        assert found(self.rule, FT_022, options={"enable_streaming": True}) == []

    @pytest.mark.parametrize(
        ("image", "serving", "reader", "remedy"),
        [
            (
                VLLM,
                {},
                "djl_python.lmi_vllm.vllm_async_service of djl-lmi 0.36.0",
                'Remove it: a request with `"stream": true` is streamed.',
            ),
            (
                TRTLLM,
                {},
                "djl_python.tensorrt_llm of djl-tensorrtllm 0.30.0",
                'Remove it: a request with `"stream": true` is streamed.',
            ),
            (
                TRTLLM,
                {"rolling_batch": "disable"},
                "djl_python.tensorrt_llm of djl-tensorrtllm 0.30.0",
                "Remove it.",
            ),
        ],
    )
    def test_some_never_stream_by_it(self, image, serving, reader, remedy):
        options = {"enable_streaming": "true"}
        assert only(found(self.rule, image, options=options, **serving)) == (
            "serving.options.enable_streaming",
            f"{reader} does not stream by `enable_streaming`",
            remedy,
        )

    @pytest.mark.parametrize(
        ("image", "serving"),
        [
            (DEEPSPEED_022, {}),
            (DEEPSPEED_023, {}),
            (DEEPSPEED, {"rolling_batch": "disable"}),
            (VLLM, ACCELERATE),
            (NEURONX, {"rolling_batch": "disable"}),
            (("djl-neuronx", "0.23.0"), {}),
        ],
    )
    def test_without_one_the_option_is_read(self, image, serving):
        assert found(self.rule, image, options={"enable_streaming": True}, **serving) == []

    @pytest.mark.parametrize("value", [False, "false"])
    def test_off_is_off(self, value):
        assert found(self.rule, LMI_032, options={"enable_streaming": value}) == []


class TestStreamsAndBatches:
    rule: Rule = staticmethod(lmi_frameworks.streams_share_no_batch)

    @pytest.mark.parametrize(
        ("image", "serving", "reader"),
        [
            (DEEPSPEED_023, {}, "djl_python.deepspeed of djl-deepspeed 0.23.0"),
            (DEEPSPEED, {}, "djl_python.deepspeed of djl-deepspeed 0.27.0"),
            (VLLM, {"entry_point": "djl_python.huggingface"}, READER),
            (
                FT,
                {"engine": "Python", "entry_point": "djl_python.fastertransformer"},
                "djl_python.fastertransformer of djl-fastertransformer 0.24.0",
            ),
        ],
    )
    def test_a_stream_has_one_reader(self, image, serving, reader):
        options = {"enable_streaming": "true"}
        assert only(found(self.rule, image, max_batch_size=4, options=options, **serving)) == (
            "serving.max_batch_size",
            f"{reader} cannot stream to the 4 requests of a batch",
            "Set `max_batch_size: 1`, or remove `enable_streaming`.",
        )
        assert found(self.rule, image, max_batch_size=1, options=options, **serving) == []
        assert found(self.rule, image, max_batch_size=4, **serving) == []
        off = {"enable_streaming": "false"}
        assert found(self.rule, image, max_batch_size=4, options=off, **serving) == []

    def test_a_handler_without_batches_is_refused_for_that(self):
        options = {"enable_streaming": True}
        assert found(self.rule, DEEPSPEED_022, max_batch_size=4, options=options) == []
