"""Batches and streams of LMI's frameworks: refusals word for word, and configs that pass."""

import pytest

from slipway.facts.images import versions
from slipway.planning.deployment import Rule
from slipway.planning.families.lmi.rules import batching as lmi_frameworks
from tests.unit.planning.lmi_findings import (
    ACCELERATE,
    DEEPSPEED,
    DEEPSPEED_022,
    DEEPSPEED_023,
    FT,
    FT_021,
    FT_022,
    LMI_032,
    NEURONX,
    READER,
    TRTLLM,
    VLLM,
    found,
)
from tests.unit.planning.rule_findings import only


class TestBatches:
    rule: Rule = staticmethod(lmi_frameworks.batches_are_answered)

    @pytest.mark.parametrize(
        ("image", "serving", "reader", "able"),
        [
            (
                FT_021,
                {},
                "djl_python.fastertransformer of djl-fastertransformer 0.21.0",
                "0.24.0",
            ),
            (
                FT_022,
                {},
                "djl_python.fastertransformer of djl-fastertransformer 0.22.1",
                "0.24.0",
            ),
            (DEEPSPEED_022, {}, "djl_python.deepspeed of djl-deepspeed 0.22.1", "0.27.0"),
            (
                ("djl-deepspeed", "0.21.0"),
                {"entry_point": "djl_python.huggingface"},
                "djl_python.huggingface of djl-deepspeed 0.21.0",
                "0.27.0",
            ),
            (
                ("djl-neuronx", "0.23.0"),
                {},
                "djl_python.transformers-neuronx of djl-neuronx 0.23.0",
                "0.30.0",
            ),
        ],
    )
    def test_a_handler_that_reads_one_request(self, image, serving, reader, able):
        assert only(found(self.rule, image, max_batch_size=4, **serving)) == (
            "serving.max_batch_size",
            f"{reader} takes one request at a time: a batch of up to 4 would fail for all of them",
            "Set `max_batch_size: 1`; one request may hold several inputs. "
            f"Version {able} answers batches.",
        )
        assert found(self.rule, image, max_batch_size=1, **serving) == []

    def test_batches_are_answered(self):
        handler = {"entry_point": "djl_python.lmi_vllm.vllm_async_service"}
        assert only(found(self.rule, VLLM, max_batch_size=4, **handler)) == (
            "serving.max_batch_size",
            "djl_python.lmi_vllm.vllm_async_service of djl-lmi 0.36.0 takes one request at a "
            "time: a batch of up to 4 would fail for all of them",
            "Remove `max_batch_size`: requests share its rolling batch.",
        )
        ((_, _, remedy),) = found(self.rule, ("djl-tensorrtllm", "0.26.0"), max_batch_size=4)
        assert remedy == (
            "Remove `max_batch_size`: requests share its rolling batch. Version 0.30.0 answers "
            "batches."
        )
        # Two kinds of batches are refused by another rule.
        assert found(self.rule, VLLM, rolling_batch="vllm", max_batch_size=4) == []
        # A server without the key is refused by another rule.
        assert found(self.rule, ("djl-deepspeed", "0.20.0"), max_batch_size=4) == []
        refused = [
            version
            for version in versions("djl-fastertransformer")
            if found(self.rule, ("djl-fastertransformer", version), max_batch_size=4)
        ]
        assert refused == ["0.21.0", "0.22.1"]

    @pytest.mark.parametrize("image", [FT, DEEPSPEED_023, DEEPSPEED, VLLM, NEURONX, TRTLLM])
    def test_handlers_that_answer_batches(self, image):
        assert found(self.rule, image, max_batch_size=4) == []


class TestWithoutRollingBatch:
    rule: Rule = staticmethod(lmi_frameworks.rolling_batch_is_on_where_needed)

    @pytest.mark.parametrize(
        ("serving", "field"),
        [
            ({"max_batch_size": 4}, "max_batch_size"),
            ({"rolling_batch": "disable"}, "rolling_batch"),
        ],
    )
    def test_tensorrt_llm_loads_t5_alone(self, serving, field):
        gpt2 = {"model": {"family": "gpt2"}}
        assert only(found(self.rule, TRTLLM, **serving, **gpt2)) == (
            f"serving.{field}",
            "without a rolling batch djl_python.tensorrt_llm of djl-tensorrtllm 0.30.0 loads "
            "only t5",
            f"Remove `{field}`.",
        )
        assert found(self.rule, TRTLLM, **serving, model={"family": "t5"}) == []
        assert found(self.rule, TRTLLM, **serving, model={"family": "other"}) == []
        assert found(self.rule, ("djl-tensorrtllm", "0.33.0"), **serving, **gpt2) == []

    def test_with_one_it_loads_any(self):
        assert found(self.rule, TRTLLM, model={"family": "gpt2"}) == []
        assert found(self.rule, TRTLLM, rolling_batch="trtllm", model={"family": "gpt2"}) == []


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
