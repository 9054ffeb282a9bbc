"""The lock: what was published for a model, committed beside its config.

A reviewer sees new weights as one changed digest. The lock is data; publishing writes the file.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field

from slipway.config.sections.artifacts import HubWeights
from slipway.config.sections.base import Section
from slipway.planning.deployment import Deployment


class TokenAccuracy(Section):
    """How a quantised model compares with fp32, along the greedy tokens of fp32."""

    tokens: int = Field(gt=0)
    equal_tokens: int = Field(ge=0)
    largest_logit_difference: float


class EncoderAccuracy(Section):
    """How a quantised encoder compares with fp32, over fixed texts.

    The norm of the outputs' differences is a share of the norm in fp32. The outputs are logits, or
    pooled embeddings.
    """

    texts: int = Field(gt=0)
    relative_difference: float = Field(ge=0)


Accuracy: TypeAlias = TokenAccuracy | EncoderAccuracy


def int8_finding(accuracy: Mapping[str, float]) -> str:
    """Returns a clause that says how int8 compares; the fields are those of an accuracy."""
    if "texts" in accuracy:
        difference = f"{100 * accuracy['relative_difference']:.3g}%"
        return f"the outputs for {accuracy['texts']} texts differ by {difference} from fp32"
    return (
        f"the model chooses {accuracy['equal_tokens']} of {accuracy['tokens']} tokens as in fp32, "
        f"and a logit differs by up to {accuracy['largest_logit_difference']:g}"
    )


class LockedPart(Section):
    """One published part of an artifact.

    `source` says where it came from: a directory of the project, `s3://...`, or `OWNER/NAME@COMMIT`
    of the Hugging Face Hub. For compiled files it is the training job. `target` is what it runs on,
    or `any`. `compiler` is there only where Slipway compiled it, and `accuracy` where it quantised.
    """

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    size_bytes: int = Field(ge=0)
    file_count: int = Field(ge=1)
    source: str
    target: str
    compiler: str | None = None
    accuracy: Accuracy | None = Field(default=None, exclude_if=lambda value: value is None)


class LockedArtifact(Section):
    """One published artifact: its parts, and the config fields they were made from.

    The parts depend on the container. LMI has `weights`. It also has `compiled` if the weights were
    partitioned, and `code` unless its settings are variables. The other containers have `compiled`.
    If Slipway compiled it, they also have the `weights` that it was compiled from. An adapter's
    `compiled` is the archive of its `weights`, and `lora_rank` is of its adapter_config.json.
    """

    inputs_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    weights: LockedPart | None = None
    compiled: LockedPart | None = None
    code: LockedPart | None = None
    lora_rank: int | None = None


class _Locked(Section):
    """The artifacts of one model.

    A sample and a release made of files have the same digest wherever they are published. An engine
    does not: a build of the same checkpoint is other bytes each time, and each environment compiles
    its own. An LMI package follows from settings, which an environment may override. So these two
    are under `environments`, and publishing to one environment leaves the artifacts of the others
    alone.
    """

    sample: LockedArtifact | None = None
    release: LockedArtifact | None = None
    environments: Mapping[str, LockedArtifact] | None = None

    def artifact(self, deployment: Deployment) -> LockedArtifact | None:
        if not deployment.deploys_release:
            return self.sample
        if _is_of_an_environment(deployment):
            return (self.environments or {}).get(deployment.environment.name)
        return self.release

    def with_artifact(self, deployment: Deployment, artifact: LockedArtifact) -> Self:
        """Returns the artifacts after one was published; these are not changed."""
        environment = deployment.environment
        if _is_of_an_environment(deployment):
            merged = {**(self.environments or {}), environment.name: artifact}
            return self.model_copy(update={"environments": dict(sorted(merged.items()))})
        return self.model_copy(update={environment.artifacts: artifact})


class Lock(_Locked):
    """The file model_configs/NAME.lock.json.

    It has the artifacts of the endpoint's model, and of each variant with a model of its own.
    """

    version: Literal[1] = 1
    variants: Mapping[str, _Locked] | None = None

    def artifact(self, deployment: Deployment) -> LockedArtifact | None:
        if deployment.variant is None:
            return super().artifact(deployment)
        return self._of(deployment.variant).artifact(deployment)

    def with_artifact(self, deployment: Deployment, artifact: LockedArtifact) -> Self:
        """Returns the lock after an artifact was published; this lock is not changed."""
        variant = deployment.variant
        if variant is None:
            return super().with_artifact(deployment, artifact)
        own = self._of(variant).with_artifact(deployment, artifact)
        variants = dict(sorted({**(self.variants or {}), variant: own}.items()))
        return self.model_copy(update={"variants": variants})

    def _of(self, variant: str) -> _Locked:
        return (self.variants or {}).get(variant, _Locked())

    def render(self) -> str:
        """Returns the file's text; the same lock gives the same bytes."""
        content = self.model_dump(mode="json", exclude_none=True)
        ordered = {"version": self.version, **content}
        return json.dumps(ordered, indent=2, ensure_ascii=False) + "\n"


def _is_of_an_environment(deployment: Deployment) -> bool:
    return deployment.is_compiled or deployment.has_code


def inputs_digest(deployment: Deployment) -> str:
    """Digests what decides the bytes of the environment's artifact, in hexadecimal."""
    return _digest(inputs(deployment))


def is_current(locked: LockedArtifact, deployment: Deployment) -> bool:
    """Returns whether publishing the config would make the locked artifact again.

    Args:
        locked: a published artifact.
        deployment: the model in the environment that has the artifact.
    """
    found = locked.inputs_digest
    return found == inputs_digest(deployment) or found == _digest(_first_inputs(deployment))


def inputs(deployment: Deployment) -> dict[str, Any]:
    """Returns what decides the bytes of the environment's artifact, as plain data.

    The target is left out. The lock's part has it, and a plan refuses another one.
    """
    source = deployment.artifact_source
    found: dict[str, Any] = {
        "source": source.model_dump(mode="json", exclude_none=True) if source else None
    }
    if isinstance(source, HubWeights) and source.allow_patterns is None:
        # What locks have for the default.
        found["source"]["allow_patterns"] = ["*.json", "*.model", "*.safetensors", "*.txt"]
    if deployment.deploys_release and deployment.config.artifacts.weights is not None:
        found["serving"] = deployment.settings_in_artifact
    if deployment.packs_archive:
        found["archive"] = True
    return found


def _first_inputs(deployment: Deployment) -> dict[str, Any]:
    """Returns what the digest of older locks is of: fields that decide no byte are among them."""
    config, sources = deployment.config, deployment.config.artifacts
    found = {
        "container": deployment.container,
        "family": config.model.family,
        "source": inputs(deployment)["source"],
    }
    if deployment.packs_archive:
        found["archive"] = True
    if deployment.deploys_release and sources.weights is not None:
        found["compile"] = sources.compile.model_dump(mode="json") if sources.compile else None
        found |= deployment.settings_in_older_locks
    return found


# Any: JSON.
def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
