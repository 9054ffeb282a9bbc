"""The tables of LMI options: what is known of single versions; that nothing contradicts itself."""

import datetime
import itertools
import json
import re
import subprocess
import sys
import time
from importlib import resources

import pytest

from slipway.facts import images
from slipway.facts.images import UnknownFrameworkError, UnknownVersionError
from slipway.facts.lmi import options as lmi_options
from slipway.facts.lmi.options import CUSTOM
from slipway.facts.lmi.versions import lmi_version
from tools.refresh_facts.tables import render

TEXTS = {
    name: resources.files("slipway.facts.lmi").joinpath(name).read_text("utf-8")
    for name in ("lmi.json", "lmi_options.json", "lmi_vllm.json")
}
TABLE, OPTIONS, VLLM = (json.loads(text) for text in TEXTS.values())
VERSIONS = list(TABLE["versions"])
IMAGES = [
    (framework, version)
    for framework in images.frameworks()
    if framework.startswith("djl-")
    for version in images.versions(framework)
]
HANDLERS = [(*image, handler) for image in IMAGES for handler in lmi_version(*image).handlers]


CACHE = "/tmp/.djl.ai"  # noqa: S108 - a path in the container


def option(framework, version, handler, name, rolling_batch=None):
    return lmi_version(framework, version).options_for(handler, rolling_batch)[name]


def names(framework, version, handler, rolling_batch=None):
    return set(lmi_version(framework, version).options_for(handler, rolling_batch))


# Engines and entry points


@pytest.mark.parametrize(
    ("framework", "version", "engines"),
    [
        ("djl-fastertransformer", "0.21.0", {"Python", "DeepSpeed", "FasterTransformer"}),
        ("djl-deepspeed", "0.22.1", {"Python", "DeepSpeed", "FasterTransformer"}),
        ("djl-fastertransformer", "0.23.0", {"Python", "DeepSpeed", "FasterTransformer", "MPI"}),
        ("djl-fastertransformer", "0.24.0", {"Python", "DeepSpeed", "FasterTransformer", "MPI"}),
        ("djl-deepspeed", "0.25.0", {"Python", "DeepSpeed", "MPI"}),
        ("djl-neuronx", "0.27.0", {"Python", "DeepSpeed", "MPI"}),
        ("djl-lmi", "0.28.0", {"Python", "MPI"}),
        ("djl-lmi", "0.38.0", {"Python", "MPI"}),
    ],
)
def test_engines(framework, version, engines):
    assert set(lmi_version(framework, version).engines) == engines


def test_engines_that_only_embed():
    assert lmi_version("djl-lmi", "0.36.0").embedding_engines == ("OnnxRuntime", "PyTorch", "Rust")
    assert lmi_version("djl-lmi", "0.28.0").embedding_engines == ()
    assert lmi_version("djl-neuronx", "0.29.0").embedding_engines == ()


@pytest.mark.parametrize(
    ("framework", "entry_point", "first", "last"),
    [
        ("djl-fastertransformer", "djl_python.fastertransformer", "0.21.0", "0.24.0"),
        ("djl-deepspeed", "djl_python.deepspeed", "0.19.0", "0.27.0"),
        ("djl-deepspeed", "djl_python.stable-diffusion", "0.20.0", "0.27.0"),
        ("djl-neuronx", "djl_python.transformers-neuronx", "0.22.1", "0.23.0"),
        ("djl-neuronx", "djl_python.transformers_neuronx", "0.24.0", "0.30.0"),
        ("djl-tensorrtllm", "djl_python.tensorrt_llm", "0.25.0", "0.33.0"),
        ("djl-tensorrtllm", "djl_python.lmi_trtllm.trtllm_async_service", "0.33.0", "0.33.0"),
        ("djl-lmi", "djl_python.lmi_vllm.vllm_async_service", "0.33.0", "0.38.0"),
        ("djl-lmi", "djl_python.huggingface", "0.28.0", "0.38.0"),
    ],
)
def test_entry_points(framework, entry_point, first, last):
    found = [
        version
        for version in images.versions(framework)
        if entry_point in lmi_version(framework, version).entry_points
    ]
    assert (found[0], found[-1]) == (first, last)


@pytest.mark.parametrize(
    ("framework", "version", "given", "entry_point"),
    [
        ("djl-fastertransformer", "0.21.0", {"engine": "FasterTransformer"}, None),
        (
            "djl-fastertransformer",
            "0.22.1",
            {"engine": "FasterTransformer"},
            "djl_python.fastertransformer",
        ),
        ("djl-deepspeed", "0.23.0", {"engine": "DeepSpeed"}, "djl_python.deepspeed"),
        ("djl-deepspeed", "0.23.0", {}, "djl_python.huggingface"),
        ("djl-deepspeed", "0.23.0", {"has_model_id": False}, None),
        ("djl-neuronx", "0.23.0", {}, "djl_python.transformers-neuronx"),
        ("djl-neuronx", "0.24.0", {}, "djl_python.transformers_neuronx"),
        ("djl-tensorrtllm", "0.30.0", {"has_model_id": False}, "djl_python.tensorrt_llm"),
        ("djl-lmi", "0.36.0", {}, "djl_python.lmi_vllm.vllm_async_service"),
        ("djl-lmi", "0.36.0", {"rolling_batch": "vllm"}, "djl_python.huggingface"),
    ],
)
def test_the_entry_point_where_none_is_set(framework, version, given, entry_point):
    assert lmi_version(framework, version).default_entry_point(**given) == entry_point


# Server keys


def test_server_keys_that_came_and_went():
    old = lmi_version("djl-deepspeed", "0.26.0").server_keys
    new = lmi_version("djl-deepspeed", "0.27.0").server_keys
    assert new["max_dynamic_batch_size"].alias_of == "batch_size"
    assert "max_dynamic_batch_size" not in old
    assert "log_model_metric" in old
    assert "log_model_metric" not in new
    assert "log_request_metric" in new
    assert "log_request_metric" not in old


def test_variables_of_the_server():
    assert lmi_version("djl-deepspeed", "0.27.0").server_variables == {"SERVING_FAIL_FAST": None}
    found = lmi_version("djl-lmi", "0.28.0").server_variables["SERVING_FAIL_FAST"]
    assert found is not None
    assert (found.type, found.default) == ("bool", False)
    assert found.source.startswith("wlm/")


# Options that the server reads


@pytest.mark.parametrize(("framework", "version", "handler"), HANDLERS)
def test_every_handler_has_the_options_of_the_server(framework, version, handler):
    found = lmi_version(framework, version).options_for(handler)
    assert found["handler"].default == "handle"
    loading, predicting = found["model_loading_timeout"], found["predict_timeout"]
    assert (loading.default, loading.unit) == (1200, "seconds")
    assert (predicting.default, predicting.unit) == (240, "seconds")
    assert found["parallel_loading"].default is False
    assert {"entryPoint", "pythonExecutable", "env", "tensor_parallel_degree"} <= set(found)


def test_tensor_parallel_degree():
    def facts(version):
        return option("djl-deepspeed", version, CUSTOM, "tensor_parallel_degree")

    assert facts("0.21.0").required_by_engines == ("DeepSpeed", "FasterTransformer")
    assert facts("0.23.0").required_by_engines == ()
    assert facts("0.23.0").type == "int"
    assert facts("0.24.0").type == "int or max"


@pytest.mark.parametrize(
    ("name", "before", "since"),
    [
        ("enable_venv", "0.22.1", "0.23.0"),
        ("mpi_mode", "0.22.1", "0.23.0"),
        ("s3url", "0.19.0", "0.20.0"),
    ],
)
def test_options_that_the_server_learned(name, before, since):
    assert name not in names("djl-deepspeed", before, CUSTOM)
    assert name in names("djl-deepspeed", since, CUSTOM)


def test_an_entry_point_may_be_an_address_from_0_22():
    assert "http" not in option("djl-deepspeed", "0.21.0", CUSTOM, "entryPoint").note
    assert "http" in option("djl-deepspeed", "0.22.1", CUSTOM, "entryPoint").note


def test_async_mode_came_with_the_async_handlers():
    assert "async_mode" not in names("djl-lmi", "0.32.0", CUSTOM)
    assert "async_mode" in names("djl-lmi", "0.33.0", CUSTOM)


def test_a_handler_of_ones_own_gets_every_key():
    assert all(lmi_version(*image).is_open(CUSTOM) for image in IMAGES)
    assert not lmi_version("djl-deepspeed", "0.27.0").is_open("deepspeed")
    assert lmi_version("djl-tensorrtllm", "0.33.0").is_open("trtllm_async")


def test_when_the_environment_fills_gaps():
    assert not lmi_version("djl-deepspeed", "0.22.1").reads_option_environment
    assert lmi_version("djl-deepspeed", "0.23.0").reads_option_environment


# Options of the handlers


def test_fastertransformer():
    def read(version):
        return names("djl-fastertransformer", version, "fastertransformer")

    dtype = option("djl-fastertransformer", "0.21.0", "fastertransformer", "dtype")
    assert (dtype.default, dtype.allowed) == ("fp32", ("fp32", "fp16", "bf16", "int8"))
    assert {"model_id", "pipeline_parallel_degree"} <= read("0.21.0")
    assert "save_mp_checkpoint_path" not in read("0.21.0")
    assert "save_mp_checkpoint_path" in read("0.22.1")
    assert "enable_streaming" not in read("0.22.1")
    streaming = option("djl-fastertransformer", "0.23.0", "fastertransformer", "enable_streaming")
    assert streaming.only_engines == ("Python",)
    assert "trust_remote_code" not in read("0.23.0")
    assert "trust_remote_code" in read("0.24.0")


def test_deepspeed():
    found = lmi_version("djl-deepspeed", "0.21.0").options_for("deepspeed")
    assert found["dtype"].allowed == ("fp32", "fp16", "bf16", "int8")
    assert {
        name: found[name].default
        for name in (
            "max_tokens",
            "low_cpu_mem_usage",
            "enable_cuda_graph",
            "triangular_masking",
            "return_tuple",
            "training_mp_size",
        )
    } == {
        "max_tokens": 1024,
        "low_cpu_mem_usage": True,
        "enable_cuda_graph": False,
        "triangular_masking": True,
        "return_tuple": True,
        "training_mp_size": 1,
    }
    assert {"task", "checkpoint", "deepspeed_config_path", "save_mp_checkpoint_path"} <= set(found)
    assert not {"trust_remote_code", "revision"} & names("djl-deepspeed", "0.22.1", "deepspeed")
    assert {"trust_remote_code", "revision"} <= names("djl-deepspeed", "0.23.0", "deepspeed")


@pytest.mark.parametrize(
    ("framework", "version", "allowed"),
    [
        ("djl-deepspeed", "0.27.0", {"auto", "scheduler", "lmi-dist", "vllm", "disable"}),
        ("djl-lmi", "0.32.0", {"auto", "scheduler", "lmi-dist", "vllm", "disable"}),
        ("djl-lmi", "0.33.0", {"auto", "vllm", "disable"}),
        ("djl-lmi", "0.38.0", {"auto", "vllm", "disable"}),
        # The images have not the libraries.
        ("djl-tensorrtllm", "0.33.0", {"auto", "disable"}),
        ("djl-fastertransformer", "0.24.0", {"auto", "scheduler"}),
    ],
)
def test_rolling_batches_of_huggingface(framework, version, allowed):
    facts = option(framework, version, "huggingface", "rolling_batch")
    assert set(facts.allowed) == allowed


def test_when_rolling_batch_became_the_default():
    def default(framework, version):
        return option(framework, version, "huggingface", "rolling_batch").default

    assert default("djl-deepspeed", "0.27.0") == "disable"
    assert default("djl-lmi", "0.28.0") == "auto"


def test_max_rolling_batch_size():
    def size(rolling_batch):
        name = "max_rolling_batch_size"
        return option("djl-deepspeed", "0.27.0", "huggingface", name, rolling_batch).default

    assert size("disable") == 32
    assert size("vllm") == size("lmi-dist") == 256


def test_engines_that_a_rolling_batch_needs():
    assert lmi_version("djl-deepspeed", "0.27.0").rolling_batch_engines == {
        "vllm": ("Python",),
        "lmi-dist": ("MPI", "DeepSpeed"),
    }
    assert lmi_version("djl-lmi", "0.28.0").rolling_batch_engines == {"vllm": ("Python",)}


def test_options_of_one_rolling_batch_are_not_those_of_another():
    def read(rolling_batch):
        return names("djl-deepspeed", "0.27.0", "huggingface", rolling_batch)

    assert "max_model_len" in read("vllm")
    assert "max_model_len" not in read("scheduler")
    assert "decoding_strategy" in read("scheduler")
    assert "decoding_strategy" not in read("vllm")
    of_any = lmi_version("djl-deepspeed", "0.27.0").options_for("huggingface")
    assert of_any["max_model_len"].rolling_batches == ("lmi-dist", "vllm")
    assert of_any["device_map"].rolling_batches == ()


def test_tensorrt_llm():
    found = lmi_version("djl-tensorrtllm", "0.27.0").options_for("tensorrt_llm")
    assert found["max_input_len"].default == 1024
    assert found["max_output_len"].default == 512
    assert found["kv_cache_free_gpu_mem_fraction"].default == 0.95
    assert found["max_num_tokens"].default is None
    later = option("djl-tensorrtllm", "0.28.0", "tensorrt_llm", "max_num_tokens")
    assert later.default == 16384


def test_transformers_neuronx():
    found = lmi_version("djl-neuronx", "0.27.0").options_for("transformers_neuronx")
    assert found["n_positions"].default == 128
    assert found["dtype"].default == "fp16"
    assert found["context_length_estimate"].type == "int list"
    levels = found["neuron_optimize_level"]
    assert (levels.minimum, levels.maximum) == (1, 3)
    assert found["quantize"].allowed == ("static_int8",)
    assert {"unroll", "compiled_graph_path", "load_split_model"} <= set(found)


def test_the_last_transformers_neuronx():
    found = lmi_version("djl-neuronx", "0.30.0").options_for("transformers_neuronx")
    assert found["n_positions"].default is None
    assert "legacy" not in (found["partition_schema"].allowed or ())
    added = {"fuse_mlp", "fused_rmsnorm_qkv", "qkv_tiling", "shard_over_sequence", "weight_tiling"}
    assert added | {"on_device_embedding", "on_device_generation"} <= set(found)
    before = names("djl-neuronx", "0.29.0", "transformers_neuronx")
    assert not added & before
    assert before - set(found) == {"on_device_embedding_config"}
    assert lmi_version("djl-neuronx", "0.30.0").default_entry_point() == (
        "djl_python.transformers_neuronx"
    )


@pytest.mark.parametrize(
    ("version", "handler", "rolling_batch"),
    [
        ("0.32.0", "huggingface", "vllm"),
        ("0.36.0", "huggingface", "vllm"),
        ("0.36.0", "vllm_async", None),
        ("0.38.0", "vllm_async", None),
    ],
)
def test_the_arguments_of_vllm_are_options(version, handler, rolling_batch):
    facts = lmi_version("djl-lmi", version)
    found = facts.options_for(handler, rolling_batch)
    assert {"max_model_len", "gpu_memory_utilization", "enable_prefix_caching", "seed"} <= set(
        found
    )
    assert "gpu_memory_utilisation" not in found
    assert found["tensor_parallel_size"].alias_of == "tensor_parallel_degree"
    assert found["max_num_seqs"].alias_of == "max_rolling_batch_size"
    assert found["seed"].source == f"vllm {facts.vllm_version}, vllm/engine/arg_utils.py"
    assert not facts.is_open(handler)


def test_arguments_of_vllm_differ_between_versions():
    old, new = (
        names("djl-lmi", version, "huggingface", "vllm") for version in ("0.32.0", "0.36.0")
    )
    assert "guided_decoding_backend" in old - new
    assert "structured_outputs_config" in new - old


def test_which_vllm():
    found = {
        version: lmi_version("djl-lmi", version).vllm_version
        for version in images.versions("djl-lmi")
    }
    assert found["0.31.0"] is None
    assert (found["0.36.0"], found["0.38.0"]) == ("0.23.0", "0.28.0")
    assert lmi_version("djl-tensorrtllm", "0.32.0").vllm_version is None


@pytest.mark.parametrize("version", VLLM["vllm"])
def test_the_image_table_names_the_same_vllm(version):
    components = images.image("djl-lmi", version, "us-east-1").components
    assert components["vllm"] == VLLM["vllm"][version]


# Weights, model families, defects


@pytest.mark.parametrize(
    ("version", "s3", "ignored", "status"),
    [
        ("0.21.0", ("s3url",), (), "read"),
        ("0.22.1", ("model_id", "s3url"), (), "deprecated"),
        ("0.26.0", ("model_id", "s3url"), (), "deprecated"),
        ("0.27.0", ("model_id",), ("s3url",), "ignored"),
    ],
)
def test_where_weights_come_from(version, s3, ignored, status):
    weights = lmi_version("djl-deepspeed", version).weights
    assert (weights.s3, weights.hub, weights.ignored) == (s3, ("model_id",), ignored)
    assert option("djl-deepspeed", version, CUSTOM, "s3url").status == status
    assert weights.cache_directory == (None if version == "0.21.0" else CACHE)


def families(framework, version, purpose):
    return {
        family.engine: set(family.model_types)
        for family in lmi_version(framework, version).model_families
        if family.purpose == purpose
    }


def test_models_that_fastertransformer_takes_by_itself():
    image = "djl-fastertransformer"
    assert families(image, "0.21.0", "detected") == {}
    assert families(image, "0.22.1", "detected") == {"FasterTransformer": {"t5"}}
    for version in ("0.23.0", "0.24.0"):
        assert families(image, version, "detected") == {
            "FasterTransformer": {"bloom", "gpt_neox", "gpt2", "t5", "opt"},
            "Python": {"gptj"},
        }


def test_models_that_deepspeed_has_kernels_for():
    old = families("djl-deepspeed", "0.22.1", "kernels")["DeepSpeed"]
    new = families("djl-deepspeed", "0.23.0", "kernels")["DeepSpeed"]
    assert old == {
        *("roberta", "xlm-roberta", "gpt2", "bert", "gpt_neo", "gptj", "opt", "gpt_neox", "bloom")
    }
    assert new - old == {"llama"}


def defects(version):
    return {defect.name for defect in lmi_version("djl-fastertransformer", version).defects}


def test_defects():
    assert defects("0.22.1") == defects("0.24.0") == {"t5_fp16"}
    assert defects("0.23.0") == {"t5_fp16", "mixed_batch_answers"}
    assert lmi_version("djl-deepspeed", "0.23.0").defects == ()
    (defect,) = lmi_version("djl-tensorrtllm", "0.33.0").defects
    assert (defect.name, defect.handler) == ("pytorch_backend", "trtllm_async")
    assert lmi_version("djl-tensorrtllm", "0.32.0").defects == ()


# Sources and consistency


def test_every_image_has_its_facts():
    assert IMAGES
    assert {
        (framework, version)
        for framework, spans in TABLE["images"].items()
        for version in VERSIONS
        if any(covers(span, version) for span in spans)
    } == set(IMAGES)


def covers(span: str, version: str) -> bool:
    first, last = span.split("..")
    return VERSIONS.index(first) <= VERSIONS.index(version) <= VERSIONS.index(last or VERSIONS[-1])


def test_versions_are_in_order():
    numbers = [[int(part) for part in version.split(".")] for version in VERSIONS]
    assert numbers == sorted(numbers)


def test_a_version_without_a_source_says_whose_facts_it_has():
    facts = lmi_version("djl-lmi", "0.38.0")
    assert facts.facts_of == "0.36.0"
    assert facts.source == lmi_version("djl-lmi", "0.36.0").source
    assert lmi_version("djl-lmi", "0.36.0").facts_of is None


@pytest.mark.parametrize("image", IMAGES)
def test_every_version_has_a_source(image):
    assert re.fullmatch(
        r"deepjavalibrary/djl-serving, \S+ \([0-9a-f]{10}\)", lmi_version(*image).source
    )


def test_every_group_has_a_source():
    about_the_file = {"as_of", "sources", "option_environment"}
    assert set(TABLE) - about_the_file == set(TABLE["sources"])
    assert set(OPTIONS["options"]) == set(OPTIONS["sources"]) - {"repository"}
    assert all(len(source) > 15 for source in TABLE["sources"].values())
    assert len({content["as_of"] for content in (TABLE, OPTIONS, VLLM)}) == 1
    assert datetime.date.fromisoformat(TABLE["as_of"]).year >= 2026


def rows():
    """Yields where each row with a span is, and the rows of the same name."""
    for key, found in TABLE["server_keys"].items():
        yield f"server key {key}", found
    for name, found in TABLE["server_variables"].items():
        yield f"server variable {name}", found
    for group, options in OPTIONS["options"].items():
        for name, found in options.items():
            yield f"{group} {name}", found
    for name, found in VLLM["argument_types"].items():
        yield f"vLLM's {name}", found
    yield "weights", TABLE["weights"]


def test_the_types_are_of_vllms_arguments():
    assert set(VLLM["argument_types"]) <= set(VLLM["engine_arguments"])
    assert len(VLLM["argument_types"]) > 150
    for version, quantization in (("0.32.0", "aqlm"), ("0.34.0", "mxfp4"), ("0.38.0", "auto_awq")):
        facts = lmi_version("djl-lmi", version)
        options = facts.options_for("huggingface", "vllm")
        assert options["gpu_memory_utilization"].maximum == 1
        for name in ("quantize", "quantization"):
            assert quantization in (options[name].allowed or ())


@pytest.mark.parametrize(("where", "found"), [pytest.param(*row, id=row[0]) for row in rows()])
def test_spans_follow_each_other(where, found):
    # An open end is the last version.
    spans = [row["in"].split("..") for row in found]
    ends = [[VERSIONS.index(end or VERSIONS[-1]) for end in span] for span in spans]
    assert all(first <= last for first, last in ends)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))


PYTHON_TYPES = {
    "int": int,
    "int or max": int,
    "float": (int, float),
    "bool": bool,
    "str": str,
    "path": str,
}


@pytest.mark.parametrize(("framework", "version", "handler"), HANDLERS)
def test_an_option_does_not_contradict_itself(framework, version, handler):
    facts = lmi_version(framework, version)
    found = facts.options_for(handler)
    assert list(found) == sorted(found)
    batches = set(found["rolling_batch"].allowed or ()) if "rolling_batch" in found else set()
    for name, each in (*found.items(), *facts.server_keys.items()):
        assert each.name == name
        assert each.source
        if each.default is not None and each.type in PYTHON_TYPES:
            assert isinstance(each.default, PYTHON_TYPES[each.type]), name
            assert (each.type == "bool") == isinstance(each.default, bool), name
        if each.allowed is not None:
            assert each.type in ("str", "int"), name
            assert len(set(each.allowed)) == len(each.allowed) > 0, name
            assert each.default in (None, *each.allowed), name
        if each.minimum is not None and each.default is not None:
            assert each.default >= each.minimum, name
        if each.maximum is not None and each.default is not None:
            assert each.default <= each.maximum, name
        if each.alias_of:
            assert each.alias_of in {*found, *facts.server_keys}, name
        assert set(each.only_engines) <= set(facts.engines), name
        assert set(each.required_by_engines) <= set(facts.engines), name
        assert set(each.rolling_batches) <= batches, name


@pytest.mark.parametrize(("framework", "version", "handler"), HANDLERS)
def test_options_of_each_rolling_batch_are_among_all(framework, version, handler):
    facts = lmi_version(framework, version)
    found = facts.options_for(handler)
    if "rolling_batch" not in found:
        return
    together = set()
    for batch in found["rolling_batch"].allowed:
        together |= set(facts.options_for(handler, batch))
    assert together == set(found)


@pytest.mark.parametrize("image", IMAGES)
def test_a_version_does_not_contradict_itself(image):
    facts = lmi_version(*image)
    for family in facts.model_families:
        assert family.handler in facts.handlers
        assert family.engine in facts.engines
    assert all(defect.handler in facts.handlers for defect in facts.defects)
    for engines in facts.rolling_batch_engines.values():
        assert set(engines) <= set(facts.engines)
    # An engine that only another image has gets the entry point that fails there.
    for engine in {"Python", "MPI"} & set(facts.engines):
        for rolling_batch in ("auto", "vllm", "disable"):
            default = facts.default_entry_point(engine, rolling_batch=rolling_batch)
            assert default is None or default in facts.entry_points


@pytest.mark.parametrize(
    ("name", "levels"), [("lmi.json", 2), ("lmi_options.json", 3), ("lmi_vllm.json", 2)]
)
def test_the_files_are_in_canonical_form(name, levels):
    assert render(json.loads(TEXTS[name]), levels=levels) == TEXTS[name]


# Reading


def test_an_unknown_framework():
    with pytest.raises(UnknownFrameworkError) as caught:
        lmi_version("sagemaker-tritonserver", "26.05")
    assert "djl-lmi" in caught.value.known
    assert caught.value.value == "sagemaker-tritonserver"


def test_an_unknown_version():
    with pytest.raises(UnknownVersionError) as caught:
        lmi_version("djl-fastertransformer", "0.25.0")
    assert caught.value.known == ("0.21.0", "0.22.1", "0.23.0", "0.24.0")
    assert caught.value.framework == "djl-fastertransformer"


def test_an_unknown_handler():
    with pytest.raises(KeyError, match="deepspeed"):
        lmi_version("djl-lmi", "0.28.0").options_for("deepspeed")


def test_the_facts_cannot_be_changed():
    facts = lmi_version("djl-lmi", "0.36.0")
    with pytest.raises(TypeError):
        facts.server_keys["batch_size"] = None  # type: ignore[index]
    with pytest.raises(TypeError):
        facts.options_for("huggingface")["seed"] = None  # type: ignore[index]


def test_importing_reads_no_table():
    script = (
        "import slipway.facts.tables as tables\n"
        "def read_table(name): raise AssertionError(name)\n"
        "tables.read_table = read_table\n"
        "import slipway.facts.lmi.versions\n"
        "try: slipway.facts.lmi.versions.lmi_version('djl-lmi', '0.36.0')\n"
        "except AssertionError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout == "lmi/lmi.json\n"


def test_reading_is_a_matter_of_milliseconds():
    def seconds() -> float:
        read = (lmi_options.table_of, lmi_options._positions, lmi_options.covers)
        for cache in (*read, lmi_options.options_of, lmi_version):
            cache.cache_clear()
        start = time.process_time()
        lmi_version("djl-lmi", "0.36.0").options_for("vllm_async")
        return time.process_time() - start

    # About 3.4 ms on a quiet machine; the bound is for a mistake, not for a busy processor.
    assert min(seconds() for _ in range(10)) < 0.04
