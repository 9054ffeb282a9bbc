"""Single versions of LMI: engines, entry points, server keys, weights, known defects."""

import pytest

from slipway.facts import images
from slipway.facts.images import UnknownFrameworkError, UnknownVersionError
from slipway.facts.lmi.options import CUSTOM
from slipway.facts.lmi.versions import lmi_version
from tests.unit.facts.lmi_images import NEWEST, option

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


def test_defects():
    assert defects("0.22.1") == defects("0.24.0") == {"t5_fp16"}
    assert defects("0.23.0") == {"t5_fp16", "mixed_batch_answers"}
    assert lmi_version("djl-deepspeed", "0.23.0").defects == ()
    (defect,) = lmi_version("djl-tensorrtllm", "0.33.0").defects
    assert (defect.name, defect.handler) == ("pytorch_backend", "trtllm_async")
    assert lmi_version("djl-tensorrtllm", "0.32.0").defects == ()


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
