"""Partitioning ahead of time: the job that is asked for, and what the server is told."""

from dataclasses import replace
from typing import Any

import pytest

from slipway.config.sections.serving.lmi import LmiServing
from slipway.errors import Problem, UserError
from slipway.facts.instances import instance_types
from slipway.planning.compiling import CompilePlan
from slipway.planning.families import deployment_of
from slipway.planning.families.lmi.handlers import compiler_images
from slipway.planning.families.lmi.partitioning import (
    job_arguments,
    job_files,
    job_settings,
    partitioning,
)
from slipway.planning.families.lmi.setup import lmi_setup
from slipway.planning.plan import ImagePlan, PartitionPlan
from tests.support.deployments import lmi, on_instance
from tests.support.partitioned import config
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, PRODUCTION, lock_for, messages, model_config

A_LOCAL_RELEASE = LOCAL.model_copy(update={"artifacts": "release"})
ANY_IMAGE = ImagePlan("1" * 12, "eu-west-1", "slipway/any", "tag")
TYPES = (instance_types()["ml.g5.12xlarge"],)


def settings(framework: str, version: str, **serving: Any) -> dict[str, str]:
    return job_settings(lmi(config(framework, version, **serving)).asked_partitioning)


def test_the_settings_of_the_job():
    assert settings(
        "djl-deepspeed", "0.27.0", max_batch_size=4, predict_timeout_seconds=30,
        options={"task": "text-generation", "max_tokens": 384, "enable_cuda_graph": True},
    ) == {
        "engine": "DeepSpeed",
        "option.entryPoint": "djl_python.deepspeed",
        "option.model_id": "/opt/ml/input/data/weights",
        "option.save_mp_checkpoint_path": "/opt/ml/model",
        "option.tensor_parallel_degree": "4",
        "option.dtype": "fp16",
        "option.max_tokens": "384",
        "option.task": "text-generation",
    }  # fmt: skip
    assert settings("djl-fastertransformer", "0.23.0", options={"enable_streaming": False}) == {
        "engine": "FasterTransformer",
        "option.entryPoint": "djl_python.fastertransformer",
        "option.model_id": "/opt/ml/input/data/weights",
        "option.save_mp_checkpoint_path": "/opt/ml/model",
        "option.tensor_parallel_degree": "4",
        "option.dtype": "fp16",
    }
    # TensorRT-LLM builds for every setting, and is told no place.
    assert settings(
        "djl-tensorrtllm", "0.33.0", max_rolling_batch_size=16, trust_remote_code=True,
        options={"max_input_len": 1024},
    ) == {
        "option.tensor_parallel_degree": "4",
        "option.dtype": "float16",
        "option.trust_remote_code": "true",
        "option.max_rolling_batch_size": "16",
        "option.max_input_len": "1024",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("framework", "version", "expected"),
    [
        ("djl-deepspeed", "0.22.1", "partition --model-dir /opt/ml/input/data/settings"),
        ("djl-fastertransformer", "0.24.0", "partition --model-dir /opt/ml/input/data/settings"),
        (
            "djl-tensorrtllm",
            "0.25.0",
            "python /opt/djl/partition/trt_llm_partition.py --properties_dir "
            "/opt/ml/input/data/settings --trt_llm_model_repo /opt/ml/model "
            "--tensor_parallel_degree 4 --model_path /opt/ml/input/data/weights",
        ),
        (
            "djl-tensorrtllm",
            "0.29.0",
            "python /opt/djl/partition/trt_llm_partition.py --properties_dir "
            "/opt/ml/input/data/settings --trt_llm_model_repo /opt/ml/model "
            "--tensor_parallel_degree 4 --pipeline_parallel_degree 1 "
            "--model_path /opt/ml/input/data/weights",
        ),
    ],
)
def test_the_arguments_of_a_version(framework, version, expected):
    found = lmi(config(framework, version)).asked_partitioning
    assert " ".join(job_arguments(found)) == expected


def test_a_setting_is_a_line_without_escapes():
    given = config("djl-deepspeed", "0.27.0", options={"task": "text-generation"})
    found = lmi(given).asked_partitioning
    (content,) = job_files(found).values()
    # Java's format would write \: for the colon of an address; partition.py would keep the slash.
    assert content.decode().splitlines()[2:4] == [
        "option.model_id=/opt/ml/input/data/weights",
        "option.save_mp_checkpoint_path=/opt/ml/model",
    ]
    assert b"\\" not in content
    assert content.endswith(b"option.task=text-generation\n")


def test_the_job_is_awss_image_on_the_type_that_is_named():
    plan = lmi(config("djl-deepspeed", "0.27.0"), PRODUCTION).compile_plan(ANY_IMAGE)
    assert isinstance(plan, CompilePlan)
    assert plan.image.uri == (
        "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.27.0-deepspeed0.12.6-cu121"
    )
    assert (plan.target, plan.compiler) == ("sm86", "DeepSpeed of djl-deepspeed 0.27.0")
    assert (plan.instance_type, plan.volume_size_gb) == ("ml.g5.12xlarge", 70)
    assert plan.hyperparameters == {}
    assert list(plan.settings) == ["serving.properties"]


@pytest.mark.parametrize(
    ("framework", "version", "expected"),
    [
        (
            "djl-deepspeed",
            "0.27.0",
            {
                "option.parallel_loading": "true",
                "option.checkpoint": "ds_inference_config.json",
            },
        ),
        ("djl-fastertransformer", "0.22.1", {"option.parallel_loading": "true"}),
        ("djl-tensorrtllm", "0.33.0", {}),
    ],
)
def test_what_the_server_is_told_to_load_parts(framework, version, expected):
    given = config(framework, version)
    released = lmi(given, PRODUCTION)
    assert released.loading_properties == expected
    published = released.properties("s3://b/p/")
    assert expected.items() <= published.items()
    plain = lmi(given, A_LOCAL_RELEASE).properties("s3://b/p/")
    assert published.items() - expected.items() == plain.items()


def test_parts_for_another_gpu_and_half_a_lock_are_not_served():
    given = config("djl-deepspeed", "0.27.0")
    lock = lock_for(given, sets=("release",))
    found = plan_for(given, PRODUCTION, lock)
    assert found.weights is not None
    assert (found.weights.digest, found.weights.target) == ("ef" * 32, "sm86")
    assert found.partition is not None
    # The code is for any GPU, the parts are not.
    locked = lock.artifact(lmi(given, PRODUCTION))
    assert locked is not None
    assert locked.compiled is not None
    older = locked.compiled.model_copy(update={"target": "sm75"})
    lock = lock.with_artifact(lmi(given, PRODUCTION), locked.model_copy(update={"compiled": older}))
    with pytest.raises(UserError) as caught:
        plan_for(given, PRODUCTION, lock)
    assert messages(caught.value) == [
        "the release in the lock was compiled for sm75, and ml.g5.12xlarge needs sm86"
    ]
    given = config("djl-deepspeed", "0.27.0")
    lock = lock_for(given, sets=("release",))
    locked = lock.artifact(lmi(given, PRODUCTION))
    assert locked is not None
    lock = lock.with_artifact(lmi(given, PRODUCTION), locked.model_copy(update={"compiled": None}))
    with pytest.raises(UserError) as caught:
        plan_for(given, PRODUCTION, lock)
    assert messages(caught.value) == ["the release was never published"]


def test_a_plan_says_where_and_how():
    given = config("djl-fastertransformer", "0.24.0")
    assert lmi(given, PRODUCTION).partition_plan == PartitionPlan(
        "ml.g5.12xlarge", "sm86", ("partition", "--model-dir", "/opt/ml/input/data/settings")
    )
    assert deployment_of(model_config(), PRODUCTION).partition_plan is None
    # The embedded AWS serves the weights as they are.
    given = config("djl-deepspeed", "0.27.0")
    local = lmi(given, A_LOCAL_RELEASE)
    assert local.loading_properties == {}
    assert local.partition_plan is None


def test_where_the_server_picks_the_framework_nothing_is_known_to_partition():
    serving = LmiServing(container="lmi", framework="djl-lmi", version="0.30.0", dtype="fp16")
    assert partitioning(lmi_setup(serving)) is None
    with pytest.raises(ValueError, match="nothing partitions its weights ahead of time"):
        _ = lmi(config("djl-lmi", "0.36.0")).asked_partitioning


def test_the_registries_of_a_region():
    assert list(compiler_images("eu-west-1")) == [("763104351884", "djl-inference")]
    assert list(compiler_images("cn-north-1")) == [("727897471807", "djl-inference")]
    assert list(compiler_images("mars-north-1")) == []


def test_a_gpu_whose_capability_is_not_known_is_no_target():
    (known,) = TYPES
    accelerator = replace(known.accelerator, compute_capability=None)
    given = config("djl-deepspeed", "0.27.0")
    # A type without a GPU decides nothing either.
    compiling = given.artifacts.compile.model_copy(update={"instance": "ml.c5.4xlarge"})
    artifacts = given.artifacts.model_copy(update={"compile": compiling})
    deployment = lmi(given.model_copy(update={"artifacts": artifacts}), PRODUCTION)
    deployment = on_instance(deployment, replace(known, accelerator=accelerator))
    found = deployment.compile_plan(ANY_IMAGE)
    assert isinstance(found, Problem)
    assert str(found) == (
        "endpoint.instances: the compute capability of the GPU of ml.g5.12xlarge is not known, so "
        "nothing can be partitioned for it [SW396]\n    Choose another type, or remove `compile`."
    )
