"""`slipway import --call`: the keyword arguments of a notebook's calls."""

import json

import pytest

from slipway.planning.families import deployment_of
from slipway.planning.families.lmi.properties import variables
from slipway.project import Project
from tests.support.pages import ROOT
from tests.support.projects import PRODUCTION, write_project

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


@pytest.fixture
def run(tmp_path, monkeypatch, slipway_command):
    """Imports a call in a new project."""
    monkeypatch.chdir(write_project(tmp_path, {}))

    def command(arguments, *options):
        (tmp_path / "call.json").write_text(json.dumps(arguments), "utf-8")
        return slipway_command("import", "chat", "--call", "call.json", *options)

    return command


def test_an_lmi_image_has_its_variables_as_settings(accepted, written, text):
    environment = {
        "HF_MODEL_ID": "s3://acme-models/llama-2-7b",
        "HF_TOKEN": TOKEN,
        "OPTION_ROLLING_BATCH": "vllm",
        "OPTION_MAX_MODEL_LEN": "4096",
        "OPTION_GPU_MEMORY_UTILIZATION": 0.9,
        "TENSOR_PARALLEL_DEGREE": "max",
        "SERVING_JOB_QUEUE_SIZE": "50",
        "OMP_NUM_THREADS": "1",
    }
    call = {
        "model": {"image_uri": LMI_IMAGE, "env": environment, "role": "arn:aws:iam::1:role/x"},
        "deploy": {
            **DEPLOY, "container_startup_health_check_timeout": 1200, "endpoint_name": "chat-1",
            "serializer": "<JSONSerializer>", "tags": [{"Key": "team", "Value": "search"}],
        },
    }  # fmt: skip
    output = accepted(call)
    content = written()
    assert content["serving"] == {
        "container": "lmi",
        "framework": "djl-lmi",
        "version": "0.30.0",
        "tensor_parallel_degree": "max",
        "dtype": "auto",
        "max_queue_length": 50,
        "rolling_batch": "vllm",
        "options": {"max_model_len": 4096, "gpu_memory_utilization": 0.9},
        "environment": {"OMP_NUM_THREADS": "1"},
    }
    assert content["endpoint"]["instance_count"] == 2
    assert content["endpoint"]["container_startup_health_check_timeout_seconds"] == 1200
    assert content["tags"] == {"team": "search"}
    assert TOKEN not in text() + output
    for line in (
        "Left out: role=arn:aws:iam::1:role/x: Slipway makes a role for each endpoint, with the "
        "rights that it needs. An existing role is named for one account, in "
        "`endpoint.execution_role_arn`.\n",
        "Left out: HF_TOKEN=(hidden): a secret belongs in no file. `slipway publish` takes "
        "HF_TOKEN from the shell.\n",
        "Left out: endpoint_name=chat-1: the endpoint is called NAME-ENVIRONMENT. Run it beside "
        "the old one, and change the clients over.\n",
    ):
        assert line in output


@pytest.mark.parametrize("name", ["qwen2-7b-vllm", "qwen2-7b-two-gpus", "qwen2-7b-trtllm"])
def test_the_variables_that_slipway_writes_come_back_as_its_file(accepted, tmp_path, name):
    shipped = deployment_of(Project(ROOT).config(name, "ci").config, PRODUCTION)
    meant = shipped.properties(URI)
    environment = variables({key: value for key, value in meant.items() if "model_id" not in key})
    image = shipped.aws_image
    uri = f"{image.account}.dkr.ecr.eu-west-1.amazonaws.com/{image.repository}:{image.tag}"
    call = {"image_uri": uri, "env": environment, "model_data": {"S3DataSource": {"S3Uri": URI}},
            "instance_type": shipped.instance.name}  # fmt: skip
    accepted(call, "--family", "qwen2", "--parameters", "7615616512")
    found = deployment_of(Project(tmp_path).config("chat", "production").config, PRODUCTION)
    assert found.properties(URI) == meant


@pytest.mark.parametrize(
    ("image", "environment"),
    [
        (TGI_IMAGE, {"HF_MODEL_ID": "/opt/ml/model", "SM_NUM_GPUS": "4"}),
        (TOOLKIT_IMAGE, {"SM_NUM_GPUS": "4"}),
    ],
)
def test_any_other_image_is_the_configs_own(accepted, written, text, image, environment):
    variables = {"HF_MODEL_ID": "mistralai/Mistral-7B-v0.1", "HF_REVISION": COMMIT,
                 "SM_NUM_GPUS": 4, "HUGGING_FACE_HUB_TOKEN": TOKEN}  # fmt: skip
    output = accepted({"image_uri": image, "env": variables, **DEPLOY})
    content = written()
    assert content["serving"] == {
        "container": "custom", "image_uri": image, "environment": environment,
    }  # fmt: skip
    assert content["artifacts"]["weights"] == {
        "source": "hub", "repository": "mistralai/Mistral-7B-v0.1", "revision": COMMIT,
    }  # fmt: skip
    assert content["model"] == {"family": "mistral", "parameters": 7_000_000_000}
    assert content["endpoint"]["network_isolation"] is True
    assert "the weights are published, and SageMaker places them in /opt/ml/model." in output
    assert TOKEN not in output + text()


@pytest.mark.parametrize(
    ("image", "kept"),
    [(LMI_IMAGE, True), (LMI_IMAGE.replace("0.30.0-lmi12.0.0-cu124", OLD_TAG), False)],
)
def test_a_server_that_fails_fast_stays_one_where_the_image_reads_it(
    accepted, written, image, kept
):
    environment = {"HF_MODEL_ID": "s3://acme-models/opt-1.3b", "SERVING_FAIL_FAST": "true"}
    output = accepted({"image_uri": image, "env": environment, **DEPLOY})
    assert written()["serving"].get("environment") == (
        {"SERVING_FAIL_FAST": "true"} if kept else None
    )
    left_out = (
        "Left out: SERVING_FAIL_FAST=true: djl-deepspeed 0.27.0 does not read the variable "
        "`SERVING_FAIL_FAST`. Remove it.\n"
    )
    assert (left_out in output) == (not kept)


@pytest.mark.parametrize(
    ("tag", "instance", "backend"),
    [
        ("25.09-py3", "ml.g5.xlarge", "tensorrt"),
        ("25.09-py3-cpu", "ml.c5.xlarge", "onnxruntime"),
    ],
)
def test_awss_triton_image_serves_a_repository(accepted, written, tag, instance, backend):
    environment = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "7",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "true",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "67108864",
        "SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT": "2",
    }
    call = {
        "image_uri": f"{TRITON_IMAGE}:{tag}", "env": environment, "instance_type": instance,
        "model_data": "s3://acme-models/resnet/model.tar.gz", "tags": [{"Key": "a", "Value": "b"}],
    }  # fmt: skip
    output = accepted(call, "--family", "other", "--parameters", "25557032")
    content = written()
    assert content["serving"] == {
        "container": "triton",
        "version": "25.09",
        "repository": "build/chat",
        "default_model": "7",
        "shared_memory_bytes": 67108864,
        "log_verbose": True,
        "backend": backend,
        "environment": {"SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT": "2"},
    }
    assert "artifacts" not in content
    assert content["tags"] == {"a": "b"}
    assert (
        "  1. mkdir -p build/chat && aws s3 cp s3://acme-models/resnet/model.tar.gz - | tar xz "
        "-C build/chat\n"
    ) in output
    changed = (
        f"Changed: Image={TRITON_IMAGE}:25.09-py3-cpu: 25.09-py3 now, which runs without a GPU"
    )
    assert (changed in output) == tag.endswith("-cpu")


def test_a_release_of_triton_without_facts_is_an_image_of_your_own(accepted, written):
    image = f"{TRITON_IMAGE}:22.07-py3"
    call = {"image_uri": image, "model_data": "s3://acme-models/opt-1.3b/", **DEPLOY}
    accepted(call)
    assert written()["serving"] == {"container": "custom", "image_uri": image}


def test_arguments_of_the_endpoint_have_fields(run, written):
    call = {
        "image_uri": TGI_IMAGE,
        "model_data": "s3://acme-models/opt-1.3b/",
        "enable_network_isolation": True,
        "vpc_config": {"Subnets": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]},
        "instance_type": "ml.g4dn.2xlarge",
        "volume_size": 30,
        "model_data_download_timeout": 900,
        "inference_ami_version": "al2-ami-sagemaker-inference-gpu-3-1",
        "routing_config": {"RoutingStrategy": "RANDOM"},
        "kms_key": "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d",
        "async_inference_config": {"S3OutputPath": "s3://acme/out/"},
        "explainer_config": {"a": 1},
        "wait": False,
        "name": None,
    }
    code, output, _ = run(call)
    endpoint = written()["endpoint"]
    assert endpoint == {
        "instances": ["ml.g4dn.2xlarge"],
        "network_isolation": True,
        "vpc": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]},
        "volume_size_gb": 30,
        "model_data_download_timeout_seconds": 900,
        "inference_ami_version": "al2-ami-sagemaker-inference-gpu-3-1",
        "routing": "random",
        "volume_key_arn": call["kms_key"],
        "container_startup_health_check_timeout_seconds": 600,
    }
    # The rules refuse a volume for this type, and fields that nothing deploys yet.
    assert (code, output) == (1, "")


def test_arguments_without_a_field_are_listed(accepted):
    call = {"image_uri": TGI_IMAGE, "model_data": "s3://acme-models/opt-1.3b/", **DEPLOY,
            "async_inference_config": {"S3OutputPath": "s3://acme/out/"},
            "explainer_config": {"a": 1}}  # fmt: skip
    output = accepted(call)
    assert (
        'Left out: async_inference_config={"S3OutputPath": "s3://acme/out/"}: see '
        "`endpoint.async_inference` in the reference.\n"
        'Left out: explainer_config={"a": 1}: no field of the config says it.\n'
    ) in output


def test_a_model_builder_names_a_repository(accepted, written):
    call = {"model": "facebook/opt-1.3b", "env_vars": {"HF_REVISION": COMMIT}, **DEPLOY}
    options = ("--framework", "djl-lmi", "--version", "0.30.0")
    accepted(call, *options)
    weights = written()["artifacts"]["weights"]
    assert (weights["repository"], weights["revision"]) == ("facebook/opt-1.3b", COMMIT)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            {"env": {"HF_MODEL_ID": "x/opt-1.3b"}, "transformers_version": "4.26", **DEPLOY},
            "call.json has no `image_uri`: the SDK chose the image [SW658]\n"
            "    Add `image_uri` to the file: the notebook prints it with `model.image_uri` after "
            "the deploy. For an LMI image, give `--framework` and `--version` instead.\n",
        ),
        (
            {"image_uri": TGI_IMAGE, "model_data": "s3://acme/opt-1.3b/model.tar.gz", **DEPLOY},
            "`model_data=s3://acme/opt-1.3b/model.tar.gz` is an archive, and no prefix of files; "
            "some options are missing, and there is no terminal to ask for them [SW410]\n"
            "    Give --weights.\n",
        ),
        (
            ["x"],
            "call.json has no object of keyword arguments [SW656]\n"
            '    Write `{"model": {...}, "deploy": {...}}`, the arguments of the two calls.\n',
        ),
    ],
)
def test_a_call_that_cannot_be_imported(run, config, call, message):
    code, _, errors = run(call, *(() if "tar" in message else ("--family", "opt")))
    assert (code, errors) == (1, f"1 problem\n- {message}")
    assert not config.exists()


@pytest.mark.parametrize("subnets", ["subnet-0a1b2c3d", 1, True, {"a": "subnet-0a1b2c3d"}])
def test_a_network_of_another_form_is_listed(accepted, written, subnets):
    network = {"Subnets": subnets, "SecurityGroupIds": ["sg-0a1b2c3d"]}
    call = {"image_uri": TGI_IMAGE, "model_data": "s3://acme-models/opt-1.3b/", **DEPLOY,
            "vpc_config": network}  # fmt: skip
    output = accepted(call)
    assert f"Left out: vpc_config={json.dumps(network)}: " in output
    assert "vpc" not in written()["endpoint"]


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
    code, _, errors = run({}, "--properties", "old")
    assert code == 1
    assert "--properties and --call name several sources [SW409]\n    Give one of" in errors
    code, _, errors = slipway_command("import", "chat")
    assert code == 1
    assert (
        "there is nothing to import [SW409]\n"
        "    Give one of --properties, --call, --hub, --endpoint." in errors
    )
