"""Which artifact another environment may take over, and why not."""

from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.errors import UserError
from slipway.planning.families import deployment_of
from slipway.planning.lock import Lock, LockedArtifact
from slipway.planning.promotion import promotable
from tests.support.deployments import on_instance
from tests.support.projects import LOCAL, PRODUCTION, lock_for, model_config

STAGING = PRODUCTION.model_copy(update={"name": "staging"})
# The embedded AWS, where it deploys releases.
EMBEDDED = LOCAL.model_copy(update={"artifacts": "release"})
WEIGHTS = {"source": "path", "path": "build/checkpoint"}
COMPILE = {"instance": "ml.g4dn.xlarge", "volume_size_gb": 30}
FILES = model_config()
COMPILED = model_config(
    artifacts={"sample": None, "release": None, "weights": WEIGHTS, "compile": COMPILE}
)
LMI = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16"}


def packaged(**serving: Any) -> ModelConfig:
    artifacts = {"sample": None, "release": None, "weights": WEIGHTS}
    return model_config(serving=LMI | serving, artifacts=artifacts)


def published_to(config: ModelConfig, environment: Environment) -> Lock:
    """The lock of one publish."""
    artifact = lock_for(config, sets=["release"]).artifact(deployment_of(config, PRODUCTION))
    assert artifact is not None
    return Lock().with_artifact(deployment_of(config, environment), artifact)


def refusal(
    source: Environment,
    target: Environment,
    lock: Lock,
    config: ModelConfig,
    target_config: ModelConfig | None = None,
) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        promotable(
            deployment_of(config, source), deployment_of(target_config or config, target), lock
        )
    (problem,) = caught.value.problems
    return problem.message, problem.remedy


@pytest.mark.parametrize("config", [FILES, COMPILED, packaged()])
def test_the_artifact_of_the_tested_environment_is_taken(config: ModelConfig) -> None:
    lock = published_to(config, STAGING)
    source = deployment_of(config, STAGING)
    found = promotable(source, deployment_of(config, PRODUCTION), lock)
    assert isinstance(found, LockedArtifact)
    assert found == lock.artifact(source)


def test_nothing_was_published_that_the_target_could_take() -> None:
    assert refusal(STAGING, PRODUCTION, published_to(COMPILED, PRODUCTION), COMPILED) == (
        "model_configs/tiny.lock.json has no artifact of `staging`",
        "Run `slipway publish tiny --env staging`, test the endpoint, then promote it.",
    )
    # The config changed since.
    lock = published_to(packaged(max_queue_length=5), STAGING)
    assert refusal(STAGING, PRODUCTION, lock, packaged()) == (
        "the config changed after the release was published to `staging`",
        "Run `slipway publish tiny --env staging`, test the endpoint, then promote it.",
    )
    # A sample is no release.
    assert refusal(LOCAL, PRODUCTION, lock_for(FILES), FILES) == (
        "environment `local` deploys the sample, and `production` deploys the release",
        "Promote from an environment with `artifacts: release`, or run `slipway publish tiny --env "
        "production`.",
    )
    config = model_config(artifacts={"release": None})
    message, _ = refusal(STAGING, PRODUCTION, Lock(), config)
    assert message == "environment `production` deploys the release, and there is none"


def test_settings_that_differ_are_named_with_both_values() -> None:
    tested, other = packaged(max_queue_length=5), packaged(options={"max_model_len": 4096})
    lock = published_to(tested, STAGING)
    assert refusal(STAGING, PRODUCTION, lock, tested, other) == (
        "the artifact follows from settings that differ between `staging` and `production`: "
        "`serving.properties.job_queue_size` (5, 1000), `serving.properties.option.max_model_len` "
        "(none, 4096)",
        "Give both environments the same values, or run `slipway publish tiny --env production`.",
    )


def test_another_gpu_needs_another_artifact() -> None:
    lock = published_to(COMPILED, STAGING)
    target = deployment_of(COMPILED, PRODUCTION)
    newer = deployment_of(model_config(endpoint={"instances": ["ml.g5.xlarge"]}), PRODUCTION)
    with pytest.raises(UserError) as caught:
        promotable(deployment_of(COMPILED, STAGING), on_instance(target, newer.instance), lock)
    (problem,) = caught.value.problems
    assert (problem.message, problem.remedy) == (
        "the artifact of `staging` was compiled for sm75, and `production` needs sm86 for "
        "ml.g5.xlarge",
        "Run `slipway publish tiny --env production`, which compiles for `production`, or promote "
        "from an environment with the same accelerator.",
    )


def test_no_artifact_of_the_embedded_aws_reaches_an_accelerator() -> None:
    source = deployment_of(COMPILED, EMBEDDED)
    artifact = published_to(COMPILED, STAGING).artifact(deployment_of(COMPILED, STAGING))
    assert artifact is not None
    assert artifact.compiled is not None
    compiled = artifact.compiled.model_copy(update={"target": "cpu"})
    lock = Lock().with_artifact(source, artifact.model_copy(update={"compiled": compiled}))
    message, _ = refusal(EMBEDDED, PRODUCTION, lock, COMPILED)
    assert message == (
        "the artifact of `local` was compiled for cpu, and `production` needs sm75 for "
        "ml.g4dn.xlarge: the embedded AWS compiles for its processor alone"
    )
    message, _ = refusal(STAGING, EMBEDDED, published_to(COMPILED, STAGING), COMPILED)
    assert message == (
        "the artifact of `staging` was compiled for sm75, and `local` needs cpu: the embedded AWS "
        "has no accelerator"
    )


def test_weights_that_the_embedded_aws_serves_uncompiled_are_no_parts() -> None:
    config = model_config(
        model={"attention_heads": 16},
        serving={
            "container": "lmi", "framework": "djl-deepspeed", "version": "0.27.0",
            "engine": "deepspeed", "dtype": "fp16",
        },
        artifacts={
            "sample": None, "release": None, "weights": WEIGHTS,
            "compile": COMPILE | {"instance": "ml.g5.2xlarge"},
        },
        endpoint={"instances": ["ml.g5.2xlarge"]},
    )  # fmt: skip
    lock = published_to(config, EMBEDDED)
    message, _ = refusal(EMBEDDED, PRODUCTION, lock, config)
    assert message == (
        "`production` serves compiled weights, and `local` serves the weights as they are, because "
        "the embedded AWS has no accelerator"
    )
