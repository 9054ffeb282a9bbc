"""The lock: what was published for a model, committed beside its config.

A reviewer sees new weights as one changed digest. The lock is data; publishing writes the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import Section
from slipway.config.sections.serving import LmiServing
from slipway.planning.timeouts import loading_timeout_seconds

ArtifactSet = Literal["sample", "release"]


class LockedPart(Section):
    """One published part of an artifact.

    `source` says where it came from: a directory of the project, `s3://...`, or `OWNER/NAME@COMMIT`
    of the Hugging Face Hub. For compiled files it is the training job. `target` is what it runs on,
    or `any`. `compiler` is there only where Slipway compiled it.
    """

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    size_bytes: int = Field(ge=0)
    file_count: int = Field(ge=1)
    source: str
    target: str
    compiler: str | None = None


class LockedArtifact(Section):
    """One published artifact: its parts, and the config fields they were made from.

    The parts depend on the container. LMI has `weights`. It also has `compiled` if the weights were
    partitioned, and `code` unless its settings are variables. The other containers have `compiled`.
    If Slipway compiled it, they also have the `weights` that it was compiled from.
    """

    inputs_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    weights: LockedPart | None = None
    compiled: LockedPart | None = None
    code: LockedPart | None = None


class Lock(Section):
    """The file model_configs/NAME.lock.json.

    A sample and a release made of files have the same digest wherever they are published. An engine
    does not: a build of the same checkpoint is other bytes each time, and each environment compiles
    its own. An LMI package follows from settings, which an environment may override. So these two
    are under `environments`, and publishing to one environment leaves the artifacts of the others
    alone.
    """

    version: Literal[1] = 1
    sample: LockedArtifact | None = None
    release: LockedArtifact | None = None
    environments: Mapping[str, LockedArtifact] | None = None

    def artifact(self, config: ModelConfig, environment: Environment) -> LockedArtifact | None:
        """Returns the published artifact that an environment deploys, or None."""
        if environment.artifacts == "sample":
            return self.sample
        if _is_of_an_environment(config, environment):
            return (self.environments or {}).get(environment.name)
        return self.release

    def with_artifact(
        self, config: ModelConfig, environment: Environment, artifact: LockedArtifact
    ) -> Lock:
        """Returns the lock after an artifact was published; this lock is not changed.

        Args:
            config: decides whether each environment has its own artifact.
            environment: the environment that was published to.
            artifact: replaces the earlier artifact.
        """
        if _is_of_an_environment(config, environment):
            merged = {**(self.environments or {}), environment.name: artifact}
            return self.model_copy(update={"environments": dict(sorted(merged.items()))})
        return self.model_copy(update={environment.artifacts: artifact})

    def render(self) -> str:
        """Returns the file's text; the same lock gives the same bytes."""
        return self.model_dump_json(indent=2, exclude_none=True) + "\n"


def is_compiled(config: ModelConfig, environment: Environment) -> bool:
    """Returns whether Slipway compiles the artifact that an environment deploys.

    The embedded AWS has no GPU. Models are compiled for its processor, and weights that would be
    partitioned are served there unpartitioned.
    """
    sources = config.artifacts
    if environment.is_local and config.serving.container == "lmi":
        return False
    return (
        environment.artifacts == "release"
        and sources.release is None
        and sources.weights is not None
        and sources.compile is not None
    )


def has_code(config: ModelConfig, environment: Environment) -> bool:
    """Returns whether the model data is a package of code that copies the weights itself.

    CloudFormation has no AdditionalModelDataSources yet (aws-cdk-lib 2.275, CfnModel), so SageMaker
    cannot bring the weights beside the package.
    """
    serving = config.serving
    is_release = environment.artifacts == "release"
    return isinstance(serving, LmiServing) and is_release and serving.configuration == "file"


def is_told_by_variables(config: ModelConfig, environment: Environment) -> bool:
    """Returns whether the model data is LMI's weights alone, and variables hold all settings."""
    serving = config.serving
    is_release = environment.artifacts == "release"
    return isinstance(serving, LmiServing) and is_release and serving.configuration == "environment"


def _is_of_an_environment(config: ModelConfig, environment: Environment) -> bool:
    return is_compiled(config, environment) or has_code(config, environment)


def inputs_digest(config: ModelConfig, artifacts: ArtifactSet) -> str:
    """Digests the config fields that an artifact is made from.

    When this differs from the lock's, the config was changed after the last publish.

    Returns:
        SHA-256 in hexadecimal.
    """
    sources = config.artifacts
    source = sources.sample if artifacts == "sample" else sources.release or sources.weights
    inputs: dict[str, Any] = {
        "container": config.serving.container,
        "family": config.model.family,
        "source": source.model_dump(mode="json") if source else None,
    }
    if artifacts == "release" and sources.weights is not None:
        # What is made of a checkpoint follows from how it is served.
        inputs["compile"] = sources.compile.model_dump(mode="json") if sources.compile else None
        inputs |= _settings(config)
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _settings(config: ModelConfig) -> dict[str, Any]:
    """Returns what an artifact has of the way its model is served."""
    serving = config.serving
    if not isinstance(serving, LmiServing):
        return {"serving": serving.model_dump(mode="json")}
    if serving.configuration == "environment":
        # Variables are in the template: what was published are weights, whatever is set.
        return {"configuration": serving.configuration}
    # Younger than the locks that there are: what they say must not become another digest.
    return {
        "serving": serving.model_dump(mode="json", exclude={"configuration"}),
        "model_loading_timeout_seconds": loading_timeout_seconds(config),
    }
