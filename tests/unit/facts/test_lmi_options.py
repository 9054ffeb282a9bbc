"""Single versions of LMI: engines, entry points, weights, and the options of each handler."""

import pytest

from slipway.facts import images
from slipway.facts.images import UnknownFrameworkError, UnknownVersionError
from slipway.facts.lmi.options import CUSTOM
from slipway.facts.lmi.versions import lmi_version
from tests.unit.facts.lmi_images import HANDLERS, IMAGES, NEWEST, names, option


@pytest.mark.parametrize(("framework", "version", "handler"), HANDLERS)
def test_every_handler_has_the_options_of_the_server(framework, version, handler):
    found = lmi_version(framework, version).options_for(handler)
    assert found["handler"].default == "handle"
    loading, predicting = found["model_loading_timeout"], found["predict_timeout"]
    assert (loading.default, loading.unit) == (1200, "seconds")
    assert (predicting.default, predicting.unit) == (240, "seconds")
    assert found["parallel_loading"].default is False
    assert {"entryPoint", "pythonExecutable", "env", "tensor_parallel_degree"} <= set(found)


def test_tensor_parallel_degree_and_the_entry_point():
    def facts(version):
        return option("djl-deepspeed", version, CUSTOM, "tensor_parallel_degree")

    assert facts("0.21.0").required_by_engines == ("DeepSpeed", "FasterTransformer")
    assert facts("0.23.0").required_by_engines == ()
    assert facts("0.23.0").type == "int"
    assert facts("0.24.0").type == "int or max"
    assert "http" not in option("djl-deepspeed", "0.21.0", CUSTOM, "entryPoint").note
    assert "http" in option("djl-deepspeed", "0.22.1", CUSTOM, "entryPoint").note


@pytest.mark.parametrize(
    ("framework", "handler", "name", "before", "since"),
    [
        ("djl-deepspeed", CUSTOM, "enable_venv", "0.22.1", "0.23.0"),
        ("djl-deepspeed", CUSTOM, "mpi_mode", "0.22.1", "0.23.0"),
        ("djl-deepspeed", CUSTOM, "s3url", "0.19.0", "0.20.0"),
        # It came with the asynchronous handlers.
        ("djl-lmi", CUSTOM, "async_mode", "0.32.0", "0.33.0"),
        ("djl-deepspeed", "deepspeed", "trust_remote_code", "0.22.1", "0.23.0"),
        ("djl-deepspeed", "deepspeed", "revision", "0.22.1", "0.23.0"),
        ("djl-fastertransformer", "fastertransformer", "save_mp_checkpoint_path", "0.21.0",
         "0.22.1"),
        ("djl-fastertransformer", "fastertransformer", "enable_streaming", "0.22.1", "0.23.0"),
        ("djl-fastertransformer", "fastertransformer", "trust_remote_code", "0.23.0", "0.24.0"),
        ("djl-neuronx", "transformers_neuronx", "fuse_mlp", "0.29.0", "0.30.0"),
        ("djl-neuronx", "transformers_neuronx", "fused_rmsnorm_qkv", "0.29.0", "0.30.0"),
        ("djl-neuronx", "transformers_neuronx", "qkv_tiling", "0.29.0", "0.30.0"),
        ("djl-neuronx", "transformers_neuronx", "shard_over_sequence", "0.29.0", "0.30.0"),
        ("djl-neuronx", "transformers_neuronx", "weight_tiling", "0.29.0", "0.30.0"),
    ],
)  # fmt: skip
def test_options_that_a_version_learned(framework, handler, name, before, since):
    assert name not in names(framework, before, handler)
    assert name in names(framework, since, handler)


def test_when_the_environment_fills_gaps_and_a_handler_of_ones_own_gets_every_key():
    assert all(lmi_version(*image).is_open(CUSTOM) for image in IMAGES)
    assert not lmi_version("djl-deepspeed", "0.27.0").is_open("deepspeed")
    assert lmi_version("djl-tensorrtllm", "0.33.0").is_open("trtllm_async")
    assert not lmi_version("djl-deepspeed", "0.22.1").reads_option_environment
    assert lmi_version("djl-deepspeed", "0.23.0").reads_option_environment


def test_fastertransformer():
    found = lmi_version("djl-fastertransformer", "0.21.0").options_for("fastertransformer")
    assert found["dtype"].default == "fp32"
    assert found["dtype"].allowed == ("fp32", "fp16", "bf16", "int8")
    assert {"model_id", "pipeline_parallel_degree"} <= set(found)
    streaming = option("djl-fastertransformer", "0.23.0", "fastertransformer", "enable_streaming")
    assert streaming.only_engines == ("Python",)


def test_deepspeed():
    found = lmi_version("djl-deepspeed", "0.21.0").options_for("deepspeed")
    assert found["dtype"].allowed == ("fp32", "fp16", "bf16", "int8")
    defaults = {
        "max_tokens": 1024,
        "low_cpu_mem_usage": True,
        "enable_cuda_graph": False,
        "triangular_masking": True,
        "return_tuple": True,
        "training_mp_size": 1,
    }
    assert {name: found[name].default for name in defaults} == defaults
    assert {"task", "checkpoint", "deepspeed_config_path", "save_mp_checkpoint_path"} <= set(found)


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


def test_when_rolling_batch_became_the_default_and_what_engines_it_needs():
    before = option("djl-deepspeed", "0.27.0", "huggingface", "rolling_batch")
    since = option("djl-lmi", "0.28.0", "huggingface", "rolling_batch")
    assert (before.default, since.default) == ("disable", "auto")
    assert lmi_version("djl-deepspeed", "0.27.0").rolling_batch_engines == {
        "vllm": ("Python",),
        "lmi-dist": ("MPI", "DeepSpeed"),
    }
    assert lmi_version("djl-lmi", "0.28.0").rolling_batch_engines == {"vllm": ("Python",)}


def test_options_of_one_rolling_batch_are_not_those_of_another():
    def read(rolling_batch=None):
        return lmi_version("djl-deepspeed", "0.27.0").options_for("huggingface", rolling_batch)

    sizes = {"disable": 32, "vllm": 256, "lmi-dist": 256}
    assert {each: read(each)["max_rolling_batch_size"].default for each in sizes} == sizes
    of_one = {"max_model_len", "decoding_strategy"}
    assert of_one & set(read("vllm")) == {"max_model_len"}
    assert of_one & set(read("scheduler")) == {"decoding_strategy"}
    of_any = read()
    assert of_any["max_model_len"].rolling_batches == ("lmi-dist", "vllm")
    assert of_any["device_map"].rolling_batches == ()


def test_arguments_of_vllm_and_of_tensorrt_llm_differ_between_versions():
    found = lmi_version("djl-tensorrtllm", "0.27.0").options_for("tensorrt_llm")
    assert found["max_input_len"].default == 1024
    assert found["max_output_len"].default == 512
    assert found["kv_cache_free_gpu_mem_fraction"].default == 0.95
    assert found["max_num_tokens"].default is None
    later = option("djl-tensorrtllm", "0.28.0", "tensorrt_llm", "max_num_tokens")
    assert later.default == 16384
    old, new = (
        names("djl-lmi", version, "huggingface", "vllm") for version in ("0.32.0", "0.36.0")
    )
    assert "guided_decoding_backend" in old - new
    assert "structured_outputs_config" in new - old


def test_transformers_neuronx():
    found = lmi_version("djl-neuronx", "0.27.0").options_for("transformers_neuronx")
    assert found["n_positions"].default == 128
    assert found["dtype"].default == "fp16"
    assert found["context_length_estimate"].type == "int list"
    levels = found["neuron_optimize_level"]
    assert (levels.minimum, levels.maximum) == (1, 3)
    assert found["quantize"].allowed == ("static_int8",)
    assert {"unroll", "compiled_graph_path", "load_split_model"} <= set(found)
    last = lmi_version("djl-neuronx", "0.30.0")
    found = last.options_for("transformers_neuronx")
    assert found["n_positions"].default is None
    assert "legacy" not in (found["partition_schema"].allowed or ())
    assert {"on_device_embedding", "on_device_generation"} <= set(found)
    before = names("djl-neuronx", "0.29.0", "transformers_neuronx")
    assert before - set(found) == {"on_device_embedding_config"}
    assert last.default_entry_point() == "djl_python.transformers_neuronx"


@pytest.mark.parametrize(
    ("version", "handler", "rolling_batch", "vllm"),
    [
        ("0.32.0", "huggingface", "vllm", "0.7.3"),
        ("0.36.0", "huggingface", "vllm", "0.23.0"),
        ("0.36.0", "vllm_async", None, "0.23.0"),
        ("0.38.0", "vllm_async", None, "0.28.0"),
    ],
)
def test_the_arguments_of_vllm_are_options(version, handler, rolling_batch, vllm):
    facts = lmi_version("djl-lmi", version)
    found = facts.options_for(handler, rolling_batch)
    assert {"max_model_len", "gpu_memory_utilization", "enable_prefix_caching", "seed"} <= set(
        found
    )
    assert "gpu_memory_utilisation" not in found
    assert found["tensor_parallel_size"].alias_of == "tensor_parallel_degree"
    assert found["max_num_seqs"].alias_of == "max_rolling_batch_size"
    assert found["seed"].source == f"vllm {vllm}, vllm/engine/arg_utils.py"
    assert not facts.is_open(handler)


CACHE = "/tmp/.djl.ai"  # noqa: S108 - a path in the container


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
        ("djl-lmi", "djl_python.lmi_vllm.vllm_async_service", "0.33.0", NEWEST),
        ("djl-lmi", "djl_python.huggingface", "0.28.0", NEWEST),
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


def test_keys_and_variables_of_the_server_that_came_and_went():
    old = lmi_version("djl-deepspeed", "0.26.0").server_keys
    new = lmi_version("djl-deepspeed", "0.27.0").server_keys
    assert new["max_dynamic_batch_size"].alias_of == "batch_size"
    assert "log_model_metric" in set(old) - set(new)
    assert {"max_dynamic_batch_size", "log_request_metric"} <= set(new) - set(old)
    assert lmi_version("djl-deepspeed", "0.27.0").server_variables == {"SERVING_FAIL_FAST": None}
    found = lmi_version("djl-lmi", "0.28.0").server_variables["SERVING_FAIL_FAST"]
    assert (found.type, found.default) == ("bool", False)
    assert found.source.startswith("wlm/")


@pytest.mark.parametrize(
    ("version", "s3", "status"),
    [
        ("0.21.0", ("s3url",), "read"),
        ("0.22.1", ("model_id", "s3url"), "deprecated"),
        ("0.26.0", ("model_id", "s3url"), "deprecated"),
        ("0.27.0", ("model_id",), "ignored"),
    ],
)
def test_where_weights_come_from(version, s3, status):
    weights = lmi_version("djl-deepspeed", version).weights
    assert weights.s3 == s3
    assert option("djl-deepspeed", version, CUSTOM, "s3url").status == status
    assert weights.cache_directory == (None if version == "0.21.0" else CACHE)


def families(framework, version, purpose):
    return {
        family.engine: set(family.model_types)
        for family in lmi_version(framework, version).model_families
        if family.purpose == purpose
    }


def test_models_that_a_handler_takes_by_itself_or_has_kernels_for():
    image = "djl-fastertransformer"
    assert families(image, "0.21.0", "detected") == {}
    assert families(image, "0.22.1", "detected") == {"FasterTransformer": {"t5"}}
    for version in ("0.23.0", "0.24.0"):
        assert families(image, version, "detected") == {
            "FasterTransformer": {"bloom", "gpt_neox", "gpt2", "t5", "opt"},
            "Python": {"gptj"},
        }
    old = families("djl-deepspeed", "0.22.1", "kernels")["DeepSpeed"]
    new = families("djl-deepspeed", "0.23.0", "kernels")["DeepSpeed"]
    assert old == {
        *("roberta", "xlm-roberta", "gpt2", "bert", "gpt_neo", "gptj", "opt", "gpt_neox", "bloom")
    }
    assert new - old == {"llama"}


def defects(version):
    return {defect.name for defect in lmi_version("djl-fastertransformer", version).defects}


def test_defects_and_engines_that_only_embed():
    assert defects("0.22.1") == defects("0.24.0") == {"t5_fp16"}
    assert defects("0.23.0") == {"t5_fp16", "mixed_batch_answers"}
    assert lmi_version("djl-deepspeed", "0.23.0").defects == ()
    (defect,) = lmi_version("djl-tensorrtllm", "0.33.0").defects
    assert (defect.name, defect.handler) == ("pytorch_backend", "trtllm_async")
    assert lmi_version("djl-tensorrtllm", "0.32.0").defects == ()
    assert lmi_version("djl-lmi", "0.36.0").embedding_engines == ("OnnxRuntime", "PyTorch", "Rust")
    assert lmi_version("djl-lmi", "0.28.0").embedding_engines == ()
    assert lmi_version("djl-neuronx", "0.29.0").embedding_engines == ()


def test_what_is_unknown_is_told_and_facts_cannot_be_changed():
    with pytest.raises(UnknownFrameworkError) as caught:
        lmi_version("sagemaker-tritonserver", "26.05")
    assert "djl-lmi" in caught.value.known
    with pytest.raises(UnknownVersionError) as caught:
        lmi_version("djl-fastertransformer", "0.25.0")
    assert caught.value.known == ("0.21.0", "0.22.1", "0.23.0", "0.24.0")
    with pytest.raises(KeyError, match="deepspeed"):
        lmi_version("djl-lmi", "0.28.0").options_for("deepspeed")
    facts = lmi_version("djl-lmi", "0.36.0")
    with pytest.raises(TypeError):
        facts.server_keys["batch_size"] = None  # type: ignore[index]
    with pytest.raises(TypeError):
        facts.options_for("huggingface")["seed"] = None  # type: ignore[index]
