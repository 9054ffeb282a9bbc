"""`slipway import --call`: the keyword arguments of a notebook's calls.

`calls.txt` has all that is printed and written for each call. `pytest tests/importing
--update-golden` writes it anew.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.planning.families import deployment_of
from slipway.planning.families.lmi.properties import variables
from slipway.project import Project
from tests.support.golden_texts import compare_golden
from tests.support.pages import ROOT
from tests.support.projects import PRODUCTION, write_project

GOLDEN = Path(__file__).with_name("calls.txt")
URI = "s3://acme-models/chat/"
LMI_IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.30.0-lmi12.0.0-cu124"
TGI_IMAGE = (
    "763104351884.dkr.ecr.eu-west-1.amazonaws.com/huggingface-pytorch-tgi-inference:"
    "2.4.0-tgi2.4.0-gpu-py311-cu124-ubuntu22.04"
)
TOOLKIT_IMAGE = (
    "763104351884.dkr.ecr.eu-west-1.amazonaws.com/huggingface-pytorch-inference:"
    "2.1.0-transformers4.37.0-gpu-py310-cu118-ubuntu20.04"
)
OLD_TAG = "0.27.0-deepspeed0.12.6-cu121"
TRITON_IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver"
COMMIT = "a09a35458c702b33eeacc393d103063234e8bc28"
TOKEN = "hf_" + "a" * 34
DEPLOY = {"instance_type": "ml.g5.12xlarge", "initial_instance_count": 2}


OPT = "s3://acme-models/opt-1.3b"
HUB = {
    "HF_MODEL_ID": "mistralai/Mistral-7B-v0.1", "HF_REVISION": COMMIT, "SM_NUM_GPUS": 4,
    "HUGGING_FACE_HUB_TOKEN": TOKEN,
}  # fmt: skip
TRITON = {
    "env": {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "7",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "true",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "67108864",
        "SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT": "2",
    },
    "model_data": "s3://acme-models/resnet/model.tar.gz",
    "tags": [{"Key": "a", "Value": "b"}],
}
FAILS_FAST = {"env": {"HF_MODEL_ID": OPT, "SERVING_FAIL_FAST": "true"}, **DEPLOY}
TGI = {"image_uri": TGI_IMAGE, "model_data": f"{OPT}/"}
NETWORK = ("--family", "opt")
# The Hub is not asked where both are said.
MISTRAL = ("--family", "mistral", "--parameters", "7241732096")
# Arguments of the call, and options of the command.
CASES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "any other image": ({"image_uri": TGI_IMAGE, "env": HUB, **DEPLOY}, MISTRAL),
    "an image with a toolkit": ({"image_uri": TOOLKIT_IMAGE, "env": HUB, **DEPLOY}, MISTRAL),
    "an LMI image": (
        {
            "model": {
                "image_uri": LMI_IMAGE,
                "env": {
                    "HF_MODEL_ID": "s3://acme-models/llama-2-7b",
                    "HF_TOKEN": TOKEN,
                    "OPTION_ROLLING_BATCH": "vllm",
                    "OPTION_MAX_MODEL_LEN": "4096",
                    "OPTION_GPU_MEMORY_UTILIZATION": 0.9,
                    "TENSOR_PARALLEL_DEGREE": "max",
                    "SERVING_JOB_QUEUE_SIZE": "50",
                    "OMP_NUM_THREADS": "1",
                },
                "role": "arn:aws:iam::1:role/x",
            },
            "deploy": {
                **DEPLOY,
                "container_startup_health_check_timeout": 1200,
                "endpoint_name": "chat-1",
                "serializer": "<JSONSerializer>",
                "tags": [{"Key": "team", "Value": "search"}],
            },
        },
        (),
    ),
    "a server that fails fast": ({"image_uri": LMI_IMAGE, **FAILS_FAST}, ()),
    "an image that cannot fail fast": (
        {"image_uri": LMI_IMAGE.replace("0.30.0-lmi12.0.0-cu124", OLD_TAG), **FAILS_FAST}, (),
    ),
    "Triton on a GPU": (
        {"image_uri": f"{TRITON_IMAGE}:25.09-py3", "instance_type": "ml.g5.xlarge", **TRITON},
        ("--family", "other", "--parameters", "25557032"),
    ),
    "Triton without a GPU": (
        {"image_uri": f"{TRITON_IMAGE}:25.09-py3-cpu", "instance_type": "ml.c5.xlarge", **TRITON},
        ("--family", "other", "--parameters", "25557032"),
    ),
    "a release of Triton without facts": (
        {"image_uri": f"{TRITON_IMAGE}:22.07-py3", "model_data": f"{OPT}/", **DEPLOY}, (),
    ),
    # The rules refuse a volume for this type.
    "arguments of the endpoint": (
        {
            **TGI,
            "enable_network_isolation": True,
            "vpc_config": {"Subnets": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]},
            "instance_type": "ml.g4dn.2xlarge",
            "volume_size": 30,
            "model_data_download_timeout": 900,
            "inference_ami_version": "al2-ami-sagemaker-inference-gpu-3-1",
            "routing_config": {"RoutingStrategy": "RANDOM"},
            "kms_key":
                "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d",
            "wait": False,
            "name": None,
        },
        (),
    ),
    "arguments without a field": (
        {
            **TGI, **DEPLOY, "async_inference_config": {"S3OutputPath": "s3://acme/out/"},
            "explainer_config": {"a": 1},
        },
        (),
    ),
    "a model builder": (
        {"model": "facebook/opt-1.3b", "env_vars": {"HF_REVISION": COMMIT}, **DEPLOY},
        (*NETWORK, "--parameters", "1300000000", "--framework", "djl-lmi", "--version", "0.30.0"),
    ),
    "an image that the SDK chose": (
        {"env": {"HF_MODEL_ID": "x/opt-1.3b"}, "transformers_version": "4.26", **DEPLOY}, NETWORK,
    ),
    "an archive": ({**TGI, "model_data": f"{OPT}/model.tar.gz", **DEPLOY}, ()),
    "no object": (["x"], NETWORK),
    **{
        f"a network of another form: {json.dumps(subnets)}": (
            {**TGI, **DEPLOY, "vpc_config": {"Subnets": subnets, "SecurityGroupIds": ["sg-0a"]}},
            (),
        )
        for subnets in ("subnet-0a1b2c3d", 1, True, {"a": "subnet-0a1b2c3d"})
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_import_says_what_it_made_and_what_it_left_out(name, run, config, request):
    code, output, errors = run(*CASES[name])
    assert code == bool(errors)
    said = f"{errors}{output}"
    if config.exists():
        said += f"--- {config.name}\n{config.read_text('utf-8')}"
    assert TOKEN not in said
    compare_golden(request, GOLDEN, CASES, name, said)


@pytest.fixture
def run(tmp_path, monkeypatch, slipway_command):
    """Imports a call in a new project."""
    monkeypatch.chdir(write_project(tmp_path, {}))

    def command(arguments, options=()):
        (tmp_path / "call.json").write_text(json.dumps(arguments), "utf-8")
        return slipway_command("import", "chat", "--call", "call.json", *options)

    return command


@pytest.mark.parametrize("name", ["qwen2-7b-vllm", "qwen2-7b-two-gpus", "qwen2-7b-trtllm"])
def test_the_variables_that_slipway_writes_come_back_as_its_file(accepted, tmp_path, name):
    shipped = deployment_of(Project(ROOT).config(name, "ci").config, PRODUCTION)
    meant = shipped.properties(URI)
    environment = variables({key: value for key, value in meant.items() if "model_id" not in key})
    image = shipped.aws_image
    uri = f"{image.account}.dkr.ecr.eu-west-1.amazonaws.com/{image.repository}:{image.tag}"
    call = {"image_uri": uri, "env": environment, "model_data": {"S3DataSource": {"S3Uri": URI}},
            "instance_type": shipped.instance.name}  # fmt: skip
    accepted(call, ("--family", "qwen2", "--parameters", "7615616512"))
    found = deployment_of(Project(tmp_path).config("chat", "production").config, PRODUCTION)
    assert found.properties(URI) == meant


def test_no_json_and_no_file(run, tmp_path, slipway_command):
    run({})
    (tmp_path / "call.json").write_text("[" * 100_000, "utf-8")
    code, _, errors = slipway_command("import", "chat", "--call", "call.json")
    assert (code, errors.partition(" [SW656]")[0]) == (
        1, "1 problem\n- call.json is not JSON: it is nested too deeply"
    )  # fmt: skip
    (tmp_path / "call.json").write_text("{'a': 1}", "utf-8")
    code, _, errors = slipway_command("import", "chat", "--call", "call.json")
    assert code == 1
    assert errors.startswith("1 problem\n- call.json is not JSON: Expecting property name")
    assert errors.endswith("    Write it in the notebook with `json.dump(..., default=str)`.\n")
    code, _, errors = slipway_command("import", "chat", "--call", "new.json")
    assert code == 1
    assert "new.json cannot be read: No such file or directory [SW656]" in errors


def test_a_call_without_end_is_not_read_to_its_end(slipway_command):
    code, _, errors = slipway_command("import", "chat", "--call", "/dev/zero")
    assert code == 1
    assert "[SW656]" in errors


def test_one_source_at_a_time(run, slipway_command):
    code, _, errors = run({}, ("--properties", "old"))
    assert code == 1
    assert "--properties and --call name several sources [SW409]\n    Give one of" in errors
    code, _, errors = slipway_command("import", "chat")
    assert code == 1
    assert (
        "there is nothing to import [SW409]\n"
        "    Give one of --properties, --call, --hub, --endpoint." in errors
    )
