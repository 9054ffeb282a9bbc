"""LMI's partition frameworks: each rule, what it says, word for word, and what it lets pass."""

import inspect
from typing import Any

import pytest

from slipway.facts.images import versions
from slipway.facts.lmi.options import CUSTOM
from slipway.planning.families import FAMILIES
from slipway.planning.families.lmi.frameworks import splits_layers
from slipway.planning.families.lmi.rules import frameworks as lmi_frameworks
from slipway.planning.families.lmi.rules import serving as lmi
from slipway.planning.situation import Rule
from tests.support.projects import PRODUCTION
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, NEURONX, TRTLLM, VLLM, found, sections
from tests.unit.planning.rule_findings import findings

ACCELERATE = {"entry_point": "djl_python.huggingface", "rolling_batch": "disable"}
FT_021 = ("djl-fastertransformer", "0.21.0")
FT_022 = ("djl-fastertransformer", "0.22.1")
DEEPSPEED_022 = ("djl-deepspeed", "0.22.1")
DEEPSPEED_023 = ("djl-deepspeed", "0.23.0")
LMI_029 = ("djl-lmi", "0.29.0")
LMI_030 = ("djl-lmi", "0.30.0")
LMI_032 = ("djl-lmi", "0.32.0")
CHECKPOINT = {"checkpoint": "ds_inference_config.json"}
READER = "djl_python.huggingface of djl-lmi 0.36.0"


def titles(image: tuple[str, str], **serving: Any) -> list[str]:
    """Returns the frameworks that may run a config, seen through a rule that never complains."""
    names: list[str] = []

    def look(situation: Any) -> Any:
        names.extend(each.title for each in situation.frameworks)
        return iter(())

    assert found(look, image, **serving) == []
    return names


@pytest.mark.parametrize("image", [FT, DEEPSPEED, VLLM, NEURONX, TRTLLM], ids="-".join)
@pytest.mark.parametrize("rule", lmi_frameworks.RULES, ids=lambda rule: rule.__name__)
def test_a_plain_config_breaks_no_rule(rule, image):
    assert found(rule, image, environment=PRODUCTION) == []


@pytest.mark.parametrize("rule", lmi_frameworks.RULES, ids=lambda rule: rule.__name__)
def test_an_unknown_handler_is_left_alone(rule):
    assert found(rule, VLLM, entry_point="djl_python.no_such", max_batch_size=4) == []


@pytest.mark.parametrize("rule", lmi_frameworks.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("image", [FT_021, LMI_030, VLLM, NEURONX], ids="-".join)
def test_a_script_of_ones_own_may_do_what_it_likes(rule, image):
    given = {"max_batch_size": 4, "options": {"enable_streaming": "true", "quantize": "awq"}}
    assert found(rule, image, script="handlers/t5", tensor_parallel_degree=2, **given) == []


def test_every_rule_is_listed_and_applied():
    functions = {
        name
        for name, value in vars(lmi_frameworks).items()
        if inspect.isgeneratorfunction(value) and value.__module__ == lmi_frameworks.__name__
    }
    assert {rule.__name__ for rule in lmi_frameworks.RULES} == functions
    assert set(lmi_frameworks.RULES) <= set(FAMILIES["lmi"].rules)


class TestWhichFramework:
    @pytest.mark.parametrize(
        ("image", "serving", "expected"),
        [
            (FT, {}, ["FasterTransformer"]),
            (DEEPSPEED, {}, ["DeepSpeed"]),
            (DEEPSPEED, {"rolling_batch": "lmi-dist"}, ["lmi-dist"]),
            (DEEPSPEED, {"rolling_batch": "scheduler"}, ["Hugging Face Accelerate"]),
            (VLLM, {}, ["vLLM"]),
            (VLLM, {"rolling_batch": "vllm"}, ["vLLM"]),
            (VLLM, ACCELERATE, ["Hugging Face Accelerate"]),
            (VLLM, {"max_batch_size": 4}, ["Hugging Face Accelerate"]),
            (LMI_030, {}, ["Hugging Face Accelerate", "lmi-dist", "vLLM"]),
            (TRTLLM, {}, ["TensorRT-LLM"]),
            (NEURONX, {}, ["Transformers-NeuronX"]),
            (NEURONX, {"script": "handlers/t5"}, []),
            # A rolling batch that this version does not have: another rule says so.
            (
                DEEPSPEED_022,
                {"entry_point": "djl_python.huggingface", "rolling_batch": "vllm"},
                [],
            ),
            (VLLM, {"entry_point": "djl_python.no_such"}, []),
        ],
    )
    def test_what_a_config_comes_to(self, image, serving, expected):
        assert titles(image, **serving) == expected

    def test_a_script_is_of_no_framework(self):
        assert CUSTOM == "custom"
        assert titles(FT, script="handlers/t5") == []


class TestPipeline:
    rule: Rule = staticmethod(lmi_frameworks.pipeline_is_possible)

    @pytest.mark.parametrize(
        ("image", "serving", "title"),
        [
            (VLLM, {}, "vLLM"),
            (LMI_029, {"rolling_batch": "vllm"}, "vLLM"),
            (LMI_029, {"rolling_batch": "lmi-dist", "engine": "MPI"}, "lmi-dist"),
            (("djl-tensorrtllm", "0.29.0"), {}, "TensorRT-LLM"),
            (("djl-neuronx", "0.29.0"), {}, "Transformers-NeuronX"),
        ],
    )
    def test_one_that_the_framework_has_not(self, image, serving, title):
        assert found(self.rule, image, pipeline_parallel_degree=2, **serving) == [
            (
                "serving.pipeline_parallel_degree",
                f"{title} of {' '.join(image)} has no pipeline parallelism; the degree is 2",
                "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
            )
        ]
        assert found(self.rule, image, pipeline_parallel_degree=1, **serving) == []

    def test_accelerate_lays_layers_out_by_the_other_degree(self):
        assert found(self.rule, LMI_029, pipeline_parallel_degree=2, **ACCELERATE) == [
            (
                "serving.pipeline_parallel_degree",
                "Hugging Face Accelerate of djl-lmi 0.29.0 has no pipeline parallelism; the degree "
                "is 2",
                "Remove it, and set `tensor_parallel_degree` to the number of GPUs.",
            )
        ]

    def test_what_one_of_the_possible_frameworks_has_passes(self):
        # DJL Serving takes lmi-dist for most of the models here.
        assert found(self.rule, LMI_030, pipeline_parallel_degree=2) == []
        lmi_dist = {"rolling_batch": "lmi-dist", "engine": "MPI"}
        assert found(self.rule, LMI_030, pipeline_parallel_degree=2, **lmi_dist) == []

    def test_where_none_of_them_has_it_each_is_named(self):
        image = ("djl-lmi", "0.34.0")
        ((_, message, _),) = found(
            self.rule, image, pipeline_parallel_degree=2, entry_point="djl_python.huggingface"
        )
        assert message == (
            "Hugging Face Accelerate or vLLM of djl-lmi 0.34.0 has no pipeline parallelism; the "
            "degree is 2"
        )

    def test_what_no_source_says_passes(self):
        assert found(self.rule, FT, pipeline_parallel_degree=2) == []
        assert found(self.rule, TRTLLM, pipeline_parallel_degree=2) == []

    @pytest.mark.parametrize("image", [DEEPSPEED, NEURONX, ("djl-lmi", "0.28.0")], ids="-".join)
    def test_an_ignored_key_is_refused_by_another_rule(self, image):
        assert found(self.rule, image, pipeline_parallel_degree=2) == []
        assert len(found(lmi.pipeline_is_read, image, pipeline_parallel_degree=2)) == 1


class TestLayersOfAccelerate:
    rule: Rule = staticmethod(lmi_frameworks.layers_are_laid_out)

    def test_without_a_map_they_are_on_one_gpu(self):
        assert found(self.rule, VLLM, tensor_parallel_degree=4, **ACCELERATE) == [
            (
                "serving.tensor_parallel_degree",
                f"without a rolling batch {READER} loads the model on one GPU of 4, whatever the "
                "degree",
                "Add `device_map: auto` to `options`, which lays whole layers on them, or set "
                "`tensor_parallel_degree: 1`.",
            )
        ]

    def test_the_servers_batches_are_without_one_too(self):
        assert len(found(self.rule, LMI_030, tensor_parallel_degree=4, max_batch_size=2)) == 1

    def test_a_map_lays_them_out(self):
        options = {"device_map": "auto"}
        assert found(self.rule, VLLM, tensor_parallel_degree=4, **ACCELERATE, options=options) == []

    def test_a_rolling_batch_lays_them_out(self):
        scheduler = {"rolling_batch": "scheduler"}
        assert found(self.rule, LMI_032, tensor_parallel_degree=4, **scheduler) == []

    def test_the_degree_lays_them_out_until_0_29(self):
        assert found(self.rule, LMI_029, tensor_parallel_degree=4, **ACCELERATE) == []

    def test_other_frameworks_split_the_layers(self):
        assert found(self.rule, VLLM, tensor_parallel_degree=4) == []
        assert found(self.rule, LMI_030, tensor_parallel_degree=4) == []

    def test_one_gpu_is_no_matter(self):
        assert found(self.rule, VLLM, tensor_parallel_degree=1, **ACCELERATE) == []

    def test_the_first_version_has_one_device(self):
        image, huggingface = ("djl-deepspeed", "0.19.0"), {"entry_point": "djl_python.huggingface"}
        assert found(self.rule, image, tensor_parallel_degree=4, **huggingface) == [
            (
                "serving.tensor_parallel_degree",
                "djl_python.huggingface of djl-deepspeed 0.19.0 loads the model on one GPU; the "
                "degree is 4",
                "Set `tensor_parallel_degree: 1`, or use a later version.",
            )
        ]
        later = ("djl-deepspeed", "0.20.0")
        assert found(self.rule, later, tensor_parallel_degree=4, **huggingface) == []

    def test_whole_layers_need_no_divisor_of_the_heads(self):
        heads = {"model": {"family": "gpt2", "attention_heads": 25}}
        rule = lmi.degree_divides_heads
        assert found(rule, LMI_029, tensor_parallel_degree=4, **ACCELERATE, **heads) == []
        assert len(found(rule, LMI_029, tensor_parallel_degree=4, **heads)) == 1
        assert len(found(rule, VLLM, tensor_parallel_degree=4, **heads)) == 1
        # What a script does with the degree is not known.
        assert len(found(rule, VLLM, tensor_parallel_degree=4, script="own", **heads)) == 1


class TestQuantizedLayers:
    rule: Rule = staticmethod(lmi_frameworks.quantized_layers_have_places)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("quantize", "bitsandbytes8"),
            ("quantize", "bitsandbytes4"),
            ("load_in_8bit", True),
            ("load_in_4bit", "true"),
        ],
    )
    def test_bitsandbytes_without_a_map(self, key, value):
        assert found(self.rule, VLLM, **ACCELERATE, options={key: value}) == [
            (
                f"serving.options.{key}",
                f"without a rolling batch {READER} loads with bitsandbytes only by a `device_map`",
                "Add `device_map: auto` to `options`.",
            )
        ]
        with_a_map = {key: value, "device_map": "auto"}
        assert found(self.rule, VLLM, **ACCELERATE, options=with_a_map) == []
        # There the degree, which is always written, makes a map.
        assert found(self.rule, LMI_029, **ACCELERATE, options={key: value}) == []

    @pytest.mark.parametrize(
        ("key", "value"),
        [("quantize", "awq"), ("load_in_8bit", False), ("load_in_4bit", "false"), ("task", "t")],
    )
    def test_other_options_pass(self, key, value):
        assert found(self.rule, VLLM, **ACCELERATE, options={key: value}) == []

    def test_vllm_quantizes_otherwise(self):
        options = {"quantize": "bitsandbytes4"}
        assert found(self.rule, VLLM, rolling_batch="vllm", options=options) == []


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
            assert found(self.rule, image, options=options, **serving) == [
                (
                    "serving.options.enable_streaming",
                    f"with a rolling batch {reader} does not stream by `enable_streaming`",
                    'Remove it: a request with `"stream": true` is streamed.',
                )
            ]

    def test_older_ones_stream_by_a_formatter(self):
        options = {"enable_streaming": "true"}
        assert found(self.rule, DEEPSPEED_023, rolling_batch="vllm", options=options) == [
            (
                "serving.options.enable_streaming",
                "with a rolling batch djl_python.huggingface of djl-deepspeed 0.23.0 does not "
                "stream by `enable_streaming`",
                "Remove it, and set `output_formatter: jsonlines`.",
            )
        ]

    def test_a_formatter_is_named_only_where_it_is_read(self):
        image, options = ("djl-deepspeed", "0.25.0"), {"enable_streaming": "true"}
        ((_, _, remedy),) = found(self.rule, image, rolling_batch="deepspeed", options=options)
        assert remedy == "Remove it."

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
        assert found(self.rule, image, options=options, **serving) == [
            (
                "serving.options.enable_streaming",
                f"{reader} does not stream by `enable_streaming`",
                remedy,
            )
        ]

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

    def test_what_no_handler_reads_is_refused_by_another_rule(self):
        assert found(self.rule, FT_022, options={"enable_streaming": True}) == []


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
        assert found(self.rule, image, max_batch_size=4, options=options, **serving) == [
            (
                "serving.max_batch_size",
                f"{reader} cannot stream to the 4 requests of a batch",
                "Set `max_batch_size: 1`, or remove `enable_streaming`.",
            )
        ]
        assert found(self.rule, image, max_batch_size=1, options=options, **serving) == []
        assert found(self.rule, image, max_batch_size=4, **serving) == []
        off = {"enable_streaming": "false"}
        assert found(self.rule, image, max_batch_size=4, options=off, **serving) == []

    def test_a_handler_without_batches_is_refused_for_that(self):
        options = {"enable_streaming": True}
        assert found(self.rule, DEEPSPEED_022, max_batch_size=4, options=options) == []


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
        assert found(self.rule, image, max_batch_size=4, **serving) == [
            (
                "serving.max_batch_size",
                f"{reader} takes one request at a time: a batch of up to 4 would fail for all of "
                "them",
                "Set `max_batch_size: 1`; one request may hold several inputs. "
                f"Version {able} answers batches.",
            )
        ]
        assert found(self.rule, image, max_batch_size=1, **serving) == []

    def test_a_handler_with_an_engine_that_batches_itself(self):
        handler = {"entry_point": "djl_python.lmi_vllm.vllm_async_service"}
        assert found(self.rule, VLLM, max_batch_size=4, **handler) == [
            (
                "serving.max_batch_size",
                "djl_python.lmi_vllm.vllm_async_service of djl-lmi 0.36.0 takes one request at a "
                "time: a batch of up to 4 would fail for all of them",
                "Remove `max_batch_size`: requests share its rolling batch.",
            )
        ]

    def test_tensorrt_llm_rolls_always(self):
        ((_, _, remedy),) = found(self.rule, ("djl-tensorrtllm", "0.26.0"), max_batch_size=4)
        assert remedy == (
            "Remove `max_batch_size`: requests share its rolling batch. Version 0.30.0 answers "
            "batches."
        )

    @pytest.mark.parametrize("image", [FT, DEEPSPEED_023, DEEPSPEED, VLLM, NEURONX, TRTLLM])
    def test_handlers_that_answer_batches(self, image):
        assert found(self.rule, image, max_batch_size=4) == []

    def test_two_kinds_of_batches_are_refused_by_another_rule(self):
        assert found(self.rule, VLLM, rolling_batch="vllm", max_batch_size=4) == []

    def test_a_server_without_the_key_is_refused_by_another_rule(self):
        assert found(self.rule, ("djl-deepspeed", "0.20.0"), max_batch_size=4) == []

    def test_every_older_version_of_fastertransformer(self):
        refused = [
            version
            for version in versions("djl-fastertransformer")
            if found(self.rule, ("djl-fastertransformer", version), max_batch_size=4)
        ]
        assert refused == ["0.21.0", "0.22.1"]


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
        assert found(self.rule, TRTLLM, **serving, **gpt2) == [
            (
                f"serving.{field}",
                "without a rolling batch djl_python.tensorrt_llm of djl-tensorrtllm 0.30.0 loads "
                "only t5",
                f"Remove `{field}`.",
            )
        ]
        assert found(self.rule, TRTLLM, **serving, model={"family": "t5"}) == []
        assert found(self.rule, TRTLLM, **serving, model={"family": "other"}) == []
        assert found(self.rule, ("djl-tensorrtllm", "0.33.0"), **serving, **gpt2) == []

    def test_with_one_it_loads_any(self):
        assert found(self.rule, TRTLLM, model={"family": "gpt2"}) == []
        assert found(self.rule, TRTLLM, rolling_batch="trtllm", model={"family": "gpt2"}) == []


class TestNeuron:
    rule: Rule = staticmethod(lmi_frameworks.framework_runs_on_neuron)

    @pytest.mark.parametrize("rolling_batch", [None, "disable"])
    def test_accelerate_knows_gpus(self, rolling_batch):
        serving = {"entry_point": "djl_python.huggingface", "rolling_batch": rolling_batch}
        assert found(self.rule, NEURONX, **serving) == [
            (
                "serving.entry_point",
                "djl_python.huggingface of djl-neuronx 0.27.0 loads the model on a GPU, and "
                "Inferentia and Trainium have none",
                "Remove `entry_point`: the image's own is `djl_python.transformers_neuronx`.",
            )
        ]

    def test_what_no_source_says_passes(self):
        serving = {"entry_point": "djl_python.huggingface", "rolling_batch": "vllm"}
        assert found(self.rule, NEURONX, **serving) == []

    def test_on_gpus_it_is_at_home(self):
        assert found(self.rule, VLLM, **ACCELERATE) == []


class TestShards:
    rule: Rule = staticmethod(lmi_frameworks.shards_are_not_quantized)

    def test_deepspeed_refuses_both(self):
        options = {**CHECKPOINT, "quantize": "smoothquant"}
        assert found(self.rule, DEEPSPEED, options=options) == [
            (
                "serving.options.quantize",
                "djl_python.deepspeed of djl-deepspeed 0.27.0 does not quantize the shards that "
                "`checkpoint` names",
                "Remove `quantize` or `checkpoint`.",
            )
        ]

    def test_one_alone_passes(self):
        assert found(self.rule, DEEPSPEED, options=CHECKPOINT) == []
        assert found(self.rule, DEEPSPEED, options={"quantize": "smoothquant"}) == []

    def test_what_is_not_read_is_refused_by_another_rule(self):
        options = {**CHECKPOINT, "quantize": "smoothquant"}
        assert found(self.rule, DEEPSPEED_023, options=options) == []


class TestCompiling:
    rule: Rule = staticmethod(lmi_frameworks.compiling_has_a_command)

    def found(self, image: tuple[str, str], **serving: Any) -> list[tuple[str, str, str]]:
        given = sections(image, **serving)
        instance = "ml.c5.4xlarge" if image[0] == "djl-neuronx" else "ml.g5.12xlarge"
        weights = {"source": "s3", "uri": "s3://my-models/flan-t5-xxl/"}
        artifacts = {"weights": weights, "compile": {"instance": instance}, "release": None}
        return findings(self.rule, PRODUCTION, **given, artifacts=artifacts)

    @pytest.mark.parametrize(
        ("image", "serving", "title"),
        [
            (VLLM, {}, "vLLM"),
            (VLLM, ACCELERATE, "Hugging Face Accelerate"),
            (LMI_030, {}, "Hugging Face Accelerate or lmi-dist or vLLM"),
        ],
    )
    def test_what_is_split_when_it_is_loaded(self, image, serving, title):
        assert self.found(image, **serving) == [
            (
                "artifacts.compile",
                f"{title} of {' '.join(image)} partitions no weights ahead of time",
                "Remove `compile`: they are split when they are loaded.",
            )
        ]

    def test_a_version_before_the_command(self):
        assert self.found(FT_021) == [
            (
                "artifacts.compile",
                "FasterTransformer of djl-fastertransformer 0.21.0 partitions no weights ahead of "
                "time",
                "Remove `compile`: they are split when they are loaded. Or use version 0.24.0, "
                "which does.",
            )
        ]

    @pytest.mark.parametrize("image", [FT, FT_022, DEEPSPEED, TRTLLM, NEURONX], ids="-".join)
    def test_what_has_a_command(self, image):
        assert self.found(image) == []

    def test_without_compile_nothing_is_asked(self):
        assert found(self.rule, VLLM, environment=PRODUCTION) == []

    def test_a_script_may_have_a_command_of_its_own(self):
        assert self.found(VLLM, script="handlers/t5") == []


def test_unknown_frameworks_are_taken_to_split_layers():
    def look(situation: Any) -> Any:
        assert splits_layers(situation.setup)
        return iter(())

    assert found(look, VLLM, script="handlers/t5") == []
    assert found(look, VLLM) == []
