"""The frameworks and handlers that answer for an LMI config, and what ours read."""

import ast
from pathlib import Path

import pytest

from slipway.facts.lmi.options import CUSTOM
from slipway.planning.families.lmi.handlers import OUR_HANDLERS
from slipway.planning.families.lmi.partitioning import splits_layers
from tests.support.deployments import lmi
from tests.support.projects import model_config

HANDLERS = Path(__file__).parents[3] / "containers" / "lmi" / "handler"
# What each of Slipway's handlers for LMI asks `Options` and `GenerationLimits` for.
SHARED = {"default_new_tokens", "max_inputs", "max_new_tokens"}
# Read to refuse it, or the server's own.
NOT_SETTINGS = {"engine", "enable_streaming", "rolling_batch"}
HUGGINGFACE = {"entry_point": "djl_python.huggingface"}
ACCELERATE = HUGGINGFACE | {"rolling_batch": "disable"}


def deployment(image, **serving):
    framework, version = image.split()
    section = {"container": "lmi", "framework": framework, "version": version, "dtype": "fp32"}
    return lmi(model_config(serving=section | serving))


@pytest.mark.parametrize(
    ("image", "serving", "expected"),
    [
        ("djl-fastertransformer 0.24.0", {}, ["FasterTransformer"]),
        ("djl-fastertransformer 0.24.0", {"script": "handlers/t5"}, []),
        ("djl-deepspeed 0.27.0", {}, ["DeepSpeed"]),
        ("djl-deepspeed 0.27.0", {"rolling_batch": "lmi-dist"}, ["lmi-dist"]),
        ("djl-deepspeed 0.27.0", {"rolling_batch": "scheduler"}, ["Hugging Face Accelerate"]),
        ("djl-lmi 0.36.0", {}, ["vLLM"]),
        ("djl-lmi 0.36.0", {"rolling_batch": "vllm"}, ["vLLM"]),
        ("djl-lmi 0.36.0", ACCELERATE, ["Hugging Face Accelerate"]),
        ("djl-lmi 0.36.0", {"max_batch_size": 4}, ["Hugging Face Accelerate"]),
        ("djl-lmi 0.30.0", {}, ["Hugging Face Accelerate", "lmi-dist", "vLLM"]),
        ("djl-tensorrtllm 0.30.0", {}, ["TensorRT-LLM"]),
        ("djl-neuronx 0.27.0", {}, ["Transformers-NeuronX"]),
        ("djl-neuronx 0.27.0", {"script": "handlers/t5"}, []),
        # A rolling batch that this version does not have: another rule says so.
        ("djl-deepspeed 0.22.1", HUGGINGFACE | {"rolling_batch": "vllm"}, []),
        ("djl-lmi 0.36.0", {"entry_point": "djl_python.no_such"}, []),
    ],
)
def test_which_frameworks_may_run_a_config(image, serving, expected):
    assert [each.title for each in deployment(image, **serving).frameworks] == expected


def test_unknown_frameworks_are_taken_to_split_layers():
    assert CUSTOM == "custom"
    for serving in ({"script": "handlers/t5"}, {}):
        assert splits_layers(deployment("djl-lmi 0.36.0", **serving).setup)


@pytest.mark.parametrize("framework", OUR_HANDLERS)
def test_what_a_handler_reads_is_what_the_facts_say(framework: str):
    """Else a rule would refuse an option that works, or pass one that does not."""
    handler = OUR_HANDLERS[framework]
    tree = ast.parse((HANDLERS / f"{handler.module}.py").read_text("utf-8"))
    read = {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "options"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert (read | SHARED) - NOT_SETTINGS == handler.options
    (dtypes,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "_DTYPES"
    )
    assert tuple(ast.literal_eval(dtypes)) == handler.dtypes
