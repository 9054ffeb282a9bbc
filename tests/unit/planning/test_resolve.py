"""From config to plan: names, units, warnings, and every reason why there is none."""

import dataclasses
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.errors import Kind, UserError
from slipway.facts.instances import instance_types
from slipway.planning.families import situation_of
from slipway.planning.lock import Lock, LockedArtifact, LockedPart
from slipway.planning.plan import DeploymentPlan, ImagePlan
from slipway.planning.resolve import resolve
from slipway.planning.rollout import RolloutPlan
from tests.support.projects import (
    DIGEST,
    IMAGE_DIGESTS,
    LOCAL,
    PRODUCTION,
    lock_for,
    messages,
    model_config,
)
from tests.support.situations import digest_of


def plan(
    config: ModelConfig,
    environment: Environment = LOCAL,
    lock: Lock | None = None,
    **options: Any,
) -> DeploymentPlan:
    used = lock_for(config) if lock is None else lock
    return resolve(config, instance_types(), environment, used, IMAGE_DIGESTS, **options)


def test_names_follow_from_model_and_environment():
    found = plan(model_config(), PRODUCTION)
    assert found.name == "tiny"
    assert found.stack_name == found.endpoint_name == "tiny-production"
    assert found.log_group_name == "/aws/sagemaker/Endpoints/tiny-production"
    assert (found.account, found.region) == ("210987654321", "eu-west-1")
    assert found.tags == {"slipway:model": "tiny", "slipway:environment": "production"}


def test_the_longest_names_still_fit_an_endpoint():
    config = model_config(name="m" * 40)
    environment = Environment(
        name="e" * 20, account="123456789012", region="us-east-1", artifacts="sample"
    )
    assert len(plan(config, environment).endpoint_name) <= 63


def test_the_image_is_ours_at_the_fingerprint_of_its_sources():
    assert plan(model_config(), PRODUCTION).image.uri == (
        "210987654321.dkr.ecr.eu-west-1.amazonaws.com/slipway/tensorrt:trt10.13-0123456789abcdef"
    )
    assert ImagePlan("1", "cn-north-1", "r", "t").uri == "1.dkr.ecr.cn-north-1.amazonaws.com.cn/r:t"


@pytest.mark.parametrize(("environment", "target"), [(LOCAL, "cpu"), (PRODUCTION, "sm75")])
def test_the_artifact_is_the_one_the_environment_deploys(environment, target):
    artifact = plan(model_config(), environment).artifact
    assert artifact.target == target
    assert artifact.published
    assert artifact.s3_uri == (f"s3://{environment.artifact_bucket}/artifacts/{DIGEST}/files/")


def test_units_are_those_of_what_reads_them():
    found = plan(model_config())
    assert found.alarms.thresholds["model_latency_p99_microseconds"] == 600_000
    assert found.container_environment == {
        "SLIPWAY_DEFAULT_NEW_TOKENS": "12",
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "5",
        "SLIPWAY_MAX_BATCH_SIZE": "8",
        "SLIPWAY_MAX_INPUT_TOKENS": "64",
        "SLIPWAY_MAX_NEW_TOKENS": "42",
        "SLIPWAY_MAX_QUEUE_LENGTH": "256",
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "55",
    }


def test_one_instance_at_rest_is_worth_a_warning():
    scaling = {
        "min_instance_count": 1,
        "max_instance_count": 4,
        "target_invocations_per_instance_per_minute": 60,
    }
    warning = (
        "single-instance",
        "One instance at rest: if it or its zone fails, the endpoint is down meanwhile.",
    )

    def warnings(**sections: Any) -> list[tuple[str, str]]:
        found = plan(model_config(**sections)).warnings
        return [dataclasses.astuple(item) for item in found]

    assert warnings() == []
    assert warnings(endpoint={"instance_count": 1}) == [warning]
    # What counts is the least the autoscaling keeps.
    assert warnings(autoscaling=scaling) == [warning]
    assert warnings(autoscaling={**scaling, "min_instance_count": 2}) == []


@pytest.mark.parametrize("environment", [LOCAL, PRODUCTION], ids=lambda item: item.name)
def test_what_was_never_published_is_refused_with_the_command(environment):
    with pytest.raises(UserError) as caught:
        plan(model_config(), environment, Lock())
    (problem,) = caught.value.problems
    assert problem.kind is Kind.STATE
    assert problem.field == ("artifacts", environment.artifacts)
    assert problem.message == f"the {environment.artifacts} was never published"
    assert problem.remedy == (
        f"Run `slipway publish tiny --env {environment.name}` and commit the lock file "
        "model_configs/tiny.lock.json."
    )


def test_a_config_changed_after_publishing_is_refused_with_the_command():
    lock = lock_for(model_config())
    changed = model_config(artifacts={"sample": {"path": "samples/other"}})
    with pytest.raises(UserError) as caught:
        plan(changed, LOCAL, lock)
    (problem,) = caught.value.problems
    assert problem.message == "the config changed after the sample was published"
    assert problem.remedy.startswith("Run `slipway publish tiny --env local` and commit the lock ")
    # The release was made from nothing that changed.
    assert plan(changed, PRODUCTION, lock).artifact.published


def test_an_unpublished_plan_names_what_cannot_exist_and_says_so():
    found = plan(model_config(), LOCAL, Lock(), allow_unpublished=True)
    assert found.artifact.s3_uri.endswith("/artifacts/unpublished/files/")
    assert not found.artifact.published
    assert [(item.code, item.message) for item in found.warnings] == [
        ("unpublished", "The artifact is not published: SageMaker would refuse this.")
    ]


def test_being_allowed_to_be_unpublished_changes_nothing_of_what_is_published():
    config = model_config()
    assert plan(config, allow_unpublished=True) == plan(config)


def test_incompatibilities_and_the_missing_publish_are_reported_together():
    config = model_config(
        endpoint={"volume_size_gb": 30}, alarms={"model_latency_p99_milliseconds": 60_000}
    )
    with pytest.raises(UserError) as caught:
        plan(config, LOCAL, Lock())
    assert [text.split(" ")[0] for text in messages(caught.value)] == [
        "ml.g4dn.xlarge", "60000", "the",
    ]  # fmt: skip


def test_without_a_release_there_is_nothing_to_publish_yet():
    config = model_config(artifacts={"release": None})
    with pytest.raises(UserError) as caught:
        plan(config, PRODUCTION, Lock())
    assert messages(caught.value) == [
        "environment `production` deploys the release, and there is none"
    ]


def test_the_plan_as_data_has_the_derived_addresses():
    found = plan(model_config())
    content = found.as_json()
    assert content["image"]["uri"] == found.image.uri
    assert content["artifact"]["s3_uri"] == found.artifact.s3_uri
    assert set(content) == {field.name for field in dataclasses.fields(found)} | {"resources"}


def test_the_same_inputs_give_the_same_plan():
    assert plan(model_config()) == plan(model_config())


def warnings_of(region: str, instance_type: str) -> list[str]:
    config = model_config(endpoint={"instances": [instance_type]}, artifacts={"release": None})
    environment = LOCAL.model_copy(update={"region": region})
    return [warning.message for warning in plan(config, environment).warnings]


def test_a_type_that_is_not_listed_in_the_region_is_worth_a_warning():
    assert warnings_of("eu-west-1", "ml.p5.48xlarge") == [
        "ml.p5.48xlarge is not in AWS's list of hosting types of eu-west-1, so the endpoint may "
        "fail to start there; it is in the lists of ap-southeast-2, ca-central-1, eu-west-2, "
        "sa-east-1, us-east-1, us-east-2, us-west-2."
    ]
    assert warnings_of("us-east-1", "ml.p5.48xlarge") == []
    # Neither the region nor the type is in the source: nothing is known, so nothing is said.
    assert warnings_of("eusc-de-east-1", "ml.g5.xlarge") == []
    assert warnings_of("eu-west-1", "ml.p3.2xlarge") == []


def lmi(**more: Any) -> dict[str, Any]:
    serving = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16"}
    weights = {"source": "hub", "repository": "gpt2", "revision": "a" * 40}
    return {
        "serving": serving | more,
        "artifacts": {"release": None, "weights": weights},
        "endpoint": {"instances": ["ml.g5.xlarge"], "network_isolation": False},
    }


def test_lmi_has_its_code_as_model_data_and_copies_the_weights_itself():
    found = plan(model_config(**lmi()), PRODUCTION)
    assert found.image.uri == (
        "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
    )
    assert found.weights is not None
    assert found.artifact.size_bytes == 482
    assert found.weights.size_bytes == 15_231_233_024
    assert found.serving_properties["option.model_id"] == found.weights.s3_uri
    assert found.weights.s3_uri == f"s3://{PRODUCTION.artifact_bucket}/artifacts/{'cd' * 32}/files/"
    assert found.as_json()["weights"]["s3_uri"] == found.weights.s3_uri
    # By the image's CUDA, 13.0.
    assert found.variants[0].inference_ami_version == "al2023-ami-sagemaker-inference-gpu-4-1"


def test_lmi_with_variables_has_its_weights_as_model_data_and_needs_no_network():
    config = model_config(**lmi(configuration="environment", environment={"OMP_NUM_THREADS": "1"}))
    endpoint = config.endpoint.model_copy(update={"network_isolation": True})
    config = config.model_copy(update={"endpoint": endpoint})
    found = plan(config, PRODUCTION)
    assert found.network_isolation
    assert found.weights is None
    assert found.artifact.size_bytes == 15_231_233_024
    assert found.serving_properties == {}
    assert "HF_MODEL_ID" not in found.container_environment
    assert found.container_environment["OPTION_DTYPE"] == "fp16"
    assert found.container_environment["OMP_NUM_THREADS"] == "1"
    packaged = plan(model_config(**lmi()), PRODUCTION)
    assert packaged.artifact.size_bytes == 482
    assert packaged.container_environment == {}


def test_lmi_with_variables_is_planned_before_it_is_published():
    config = model_config(**lmi(configuration="environment"))
    with pytest.raises(UserError, match="the release was never published"):
        plan(config, PRODUCTION, Lock())
    found = plan(config, PRODUCTION, Lock(), allow_unpublished=True)
    assert found.artifact.s3_uri.endswith("/artifacts/unpublished/files/")
    assert found.container_environment["OPTION_DTYPE"] == "fp16"


def test_lmi_with_variables_takes_a_sample_with_its_own_settings():
    found = plan(model_config(**lmi(configuration="environment")))
    assert found.weights is None
    assert found.container_environment == {}


def test_a_change_of_how_settings_are_said_needs_a_publish():
    packaged, told = (model_config(**lmi(configuration=form)) for form in ("file", "environment"))
    for config, lock in ((packaged, lock_for(told)), (told, lock_for(packaged))):
        with pytest.raises(UserError, match="was never published"):
            plan(config, PRODUCTION, lock)


def test_lmi_serves_a_sample_as_it_is():
    found = plan(model_config(**lmi()))
    assert found.artifact.published
    assert found.weights is None
    assert found.serving_properties == {}


def test_a_lock_without_a_part_that_is_needed_is_none():
    config = model_config(**lmi())
    lock = lock_for(config)
    whole = lock.artifact(situation_of(config, PRODUCTION))
    assert whole is not None
    for part in ("weights", "code"):
        partial = lock.with_artifact(
            situation_of(config, PRODUCTION), whole.model_copy(update={part: None})
        )
        with pytest.raises(UserError) as caught:
            plan(config, PRODUCTION, partial)
        assert messages(caught.value) == ["the release was never published"]


def test_serving_otherwise_is_another_artifact_only_where_it_is_made_of_a_checkpoint():
    config = model_config(**lmi())
    for changed, published in (
        (model_config(**lmi(dtype="bf16")), False),
        (model_config(**lmi() | {"alarms": {"model_latency_p99_milliseconds": 700}}), True),
    ):
        found = plan(changed, PRODUCTION, lock_for(config), allow_unpublished=True)
        assert found.artifact.published is published
    compiled = model_config()
    assert plan(model_config(serving={"max_queue_length": 9}), PRODUCTION, lock_for(compiled))


def test_what_has_no_image_yet_can_only_be_read():
    serving = {
        "container": "neuron",
        "framework": "neuron",
        "task": "embeddings",
        "objective": "latency",
        "sequence_length": 128,
    }
    config = model_config(
        serving=serving,
        model={"family": "bert", "parameters": 109_482_240},
        endpoint={"instances": ["ml.inf1.6xlarge"]},
        artifacts={"release": {"path": "build/bert", "target": "inf1"}},
    )
    with pytest.raises(UserError) as caught:
        plan(config, PRODUCTION)
    assert messages(caught.value) == ["Slipway has no image for the container `neuron` yet"]
    found = plan(config, PRODUCTION, Lock(), allow_unpublished=True)
    assert found.image.repository == "slipway/neuron"
    assert found.image.tag == "neuron1.13.1-sdk2.20.2-unpublished"
    assert found.neuron is not None
    assert found.neuron.pipeline_cores == 16
    # inf1 takes no host image.
    assert found.variants[0].inference_ami_version is None


def test_a_custom_image_on_neuron_devices_gets_the_host_with_the_newer_driver():
    """Left to SageMaker, the host has Neuron driver 2.10."""
    own = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2"
    serving = {"container": "custom", "image_uri": own}

    def host(*instances: str) -> str | None:
        config = model_config(serving=serving, endpoint={"instances": list(instances)})
        return plan(config).variants[0].inference_ami_version

    assert host("ml.inf2.xlarge", "ml.trn1.2xlarge") == "al2-ami-sagemaker-inference-neuron-2"
    assert host("ml.inf1.xlarge") is None
    assert host("ml.c5.xlarge") is None
    # A pool has one host image, and no host image fits both types.
    with pytest.raises(UserError, match=r"ml\.c5\.xlarge has no GPU, and ml\.inf2\.xlarge of the"):
        host("ml.inf2.xlarge", "ml.c5.xlarge")


def test_triton_is_told_which_model_answers():
    serving = {"container": "triton", "version": "25.04", "max_input_tokens": 32}
    config = model_config(serving=serving | {"max_new_tokens": 32}, model={"family": "t5"})
    found = plan(config)
    assert found.image.repository == "slipway/triton"
    assert found.image.tag == "triton25.04-00112233445566aa"
    assert found.container_environment == {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "tiny",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "5242880",
        "SLIPWAY_INSTANCE_COUNT": "1",
        "SLIPWAY_MAX_BATCH_DELAY_MICROSECONDS": "0",
        "SLIPWAY_MAX_BATCH_SIZE": "8",
        "SLIPWAY_MAX_INPUT_TOKENS": "32",
        "SLIPWAY_MAX_NEW_TOKENS": "32",
        "SLIPWAY_MAX_QUEUE_LENGTH": "256",
    }
    own = {"container": "triton", "version": "25.04", "repository": "triton/tiny"}
    own |= {"log_verbose": True}
    found = plan(model_config(serving=own, artifacts={"release": None}))
    assert found.image.uri == (
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.04-py3"
    )
    # The image has a default of shared memory, and the repository may have one model.
    assert found.container_environment == {"SAGEMAKER_TRITON_LOG_VERBOSE": "true"}


def test_v100_gets_the_older_tensorrt_and_its_host():
    endpoint = {"instances": ["ml.p3.2xlarge"]}
    found = plan(model_config(endpoint=endpoint))
    assert found.image.tag == "trt10.4-0123456789abcdef"
    assert found.variants[0].inference_ami_version == "al2-ami-sagemaker-inference-gpu-3-1"
    assert plan(model_config()).variants[0].inference_ami_version == (
        "al2023-ami-sagemaker-inference-gpu-4-1"
    )


def test_what_it_costs_is_in_the_plan():
    scaling = {
        "min_instance_count": 1,
        "max_instance_count": 4,
        "target_invocations_per_instance_per_minute": 60,
    }
    found = plan(model_config(autoscaling=scaling)).cost.instances
    # ml.g4dn.xlarge in us-east-1: 0.7364 USD an hour, 730 hours, 1 to 4 instances and 2 at first.
    assert (found.minimum, found.expected, found.maximum) == (537.57, 1075.14, 2150.29)
    fixed = plan(model_config()).cost.instances
    assert fixed.minimum == fixed.expected == fixed.maximum == 1075.14


def test_a_source_that_an_environment_lacks_is_a_warning_in_an_unpublished_plan():
    config = model_config(artifacts={"sample": None})
    found = plan(config, LOCAL, Lock(), allow_unpublished=True)
    assert [item.message for item in found.warnings] == [
        "There is no sample to publish, which `local` deploys: SageMaker would refuse this."
    ]
    with pytest.raises(UserError) as caught:
        plan(config, LOCAL, Lock())
    assert messages(caught.value) == ["environment `local` deploys the sample, and there is none"]
    assert caught.value.problems[0].remedy.startswith(
        "Set `artifacts: release` for `local` in environments.yaml to deploy the model itself, or "
    )


def test_without_any_source_the_remedy_is_a_sample():
    config = model_config(artifacts={"sample": None, "release": None})
    with pytest.raises(UserError) as caught:
        plan(config, LOCAL, Lock())
    assert caught.value.problems[0].remedy.startswith("Add `artifacts.sample` with the path of ")


COMPILED = {
    "artifacts": {
        "release": None,
        "sample": {"path": "samples/tiny"},
        "weights": {"source": "path", "path": "build/checkpoint"},
        "compile": {"instance": "ml.g4dn.xlarge"},
    }
}
EMBEDDED = Environment(name="local", account="123456789012", region="us-east-1")


def test_what_was_compiled_is_the_model_data_and_its_weights_are_not():
    config = model_config(**COMPILED)
    found = plan(config, PRODUCTION, lock_for(config))
    assert (found.artifact.digest, found.artifact.target) == (DIGEST, "sm75")
    assert found.weights is None


def test_what_another_environment_compiled_is_not_this_ones():
    config = model_config(**COMPILED)
    for environment in (EMBEDDED, PRODUCTION.model_copy(update={"name": "staging"})):
        with pytest.raises(UserError, match="the release was never published") as caught:
            plan(config, environment, lock_for(config))
        assert f"--env {environment.name}`" in caught.value.problems[0].remedy


@pytest.mark.parametrize(
    ("environment", "target", "message"),
    [
        (
            PRODUCTION,
            "cpu",
            "the release in the lock was compiled for cpu, and ml.g4dn.xlarge needs sm75",
        ),
        (
            PRODUCTION,
            "sm86",
            "the release in the lock was compiled for sm86, and ml.g4dn.xlarge needs sm75",
        ),
        (
            EMBEDDED,
            "sm75",
            "the release in the lock was compiled for sm75, and the embedded AWS has no "
            "accelerator",
        ),
    ],
    ids=["no GPU", "another GPU", "embedded"],
)
def test_a_model_compiled_for_something_else_is_never_deployed(environment, target, message):
    config = model_config(**COMPILED)
    compiled = lock_for(config).artifact(situation_of(config, PRODUCTION))
    assert compiled is not None
    assert compiled.compiled is not None
    other = compiled.model_copy(
        update={"compiled": compiled.compiled.model_copy(update={"target": target})}
    )
    with pytest.raises(UserError) as caught:
        plan(config, environment, Lock(environments={environment.name: other}))
    (problem,) = caught.value.problems
    assert problem.message == message
    assert problem.remedy == (
        f"Run `slipway publish tiny --env {environment.name}` and commit the lock file "
        "model_configs/tiny.lock.json."
    )
    assert problem.field == ("artifacts", "compile")


def test_an_image_of_ones_own_takes_weights_as_they_are():
    config = model_config(
        serving={
            "container": "custom",
            "image_uri": "210987654321.dkr.ecr.eu-west-1.amazonaws.com/own:1",
        },
        artifacts={"release": None, "weights": {"source": "path", "path": "build/checkpoint"}},
    )
    weights = LockedPart(
        digest=DIGEST, size_bytes=1, file_count=1, source="build/checkpoint", target="any"
    )
    locked = LockedArtifact(inputs_digest=digest_of(config, "release"), weights=weights)
    found = plan(config, PRODUCTION, Lock(release=locked))
    assert (found.artifact.digest, found.artifact.target) == (DIGEST, "any")


def test_a_problem_of_types_that_variants_share_is_said_once():
    variants = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]
    config = model_config(endpoint={"instances": ["ml.c5.xlarge"], "variants": variants})
    with pytest.raises(UserError) as caught:
        plan(config)
    found = [problem for problem in caught.value.problems if problem.field[-2:] == ("instances", 0)]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("instance_type", "ami"),
    [
        ("ml.g4dn.xlarge", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("ml.c5.xlarge", None),
        # A driver for NVIDIA's GPUs is of no use to them.
        ("ml.inf2.xlarge", None),
        ("ml.inf1.xlarge", None),
    ],
)
def test_a_variant_has_the_host_image_of_its_own_types(instance_type: str, ami: str | None):
    serving = {
        "container": "custom",
        "image_uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2",
        "cuda_version": "12.4",
    }
    variants = [
        {"name": "gpu", "weight": 1, "instances": ["ml.g5.xlarge"]},
        {"name": "other", "weight": 1, "instances": [instance_type]},
    ]
    found = plan(model_config(serving=serving, endpoint={"variants": variants})).variants
    assert found[0].inference_ami_version == "al2-ami-sagemaker-inference-gpu-3-1"
    assert found[1].inference_ami_version == ami


@pytest.mark.parametrize("rollout", [{}, {"strategy": "all_at_once"}])
def test_sagemakers_own_rollout_needs_no_settings(rollout: dict[str, Any]):
    assert plan(model_config(rollout=rollout)).rollout is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        # The default of the field, but somebody asks to be protected by it.
        (
            {"rollback_alarms": ["server_error_rate"]},
            RolloutPlan(
                "all_at_once", None, 300, 0, None, ("server_error_rate",), ("server_error_rate",)
            ),
        ),
        (
            {"wait_seconds": 0, "rollback_alarms": []},
            RolloutPlan("all_at_once", None, 0, 0, None, (), ()),
        ),
        (
            {"termination_wait_seconds": 60, "max_execution_seconds": 900},
            RolloutPlan(
                "all_at_once", None, 300, 60, 900, ("server_error_rate",), ("server_error_rate",)
            ),
        ),
    ],
)
def test_a_rollout_is_planned_where_any_of_it_is_asked_for(
    asked: dict[str, Any], expected: RolloutPlan
):
    assert plan(model_config(rollout=asked)).rollout == expected
