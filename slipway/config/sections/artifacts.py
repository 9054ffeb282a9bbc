"""`artifacts`: where the model's files come from, and what is made of them."""

from typing import Annotated, Literal

from pydantic import Field

from slipway.config.sections.base import InstanceType, ProjectPath, S3Prefix, Section

_TARGET = r"^(cpu|sm[0-9]{2,3}|inf1|inf2|trn1)$"


_Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=256)], ...] | None,
    Field(min_length=1, max_length=50, strict=False),
]
_FolderPatterns = Annotated[
    _Patterns,
    Field(
        description="Files to take, as shell patterns. The default is every file but weights that "
        "are there in another format too: pickles beside safetensors, ONNX, GGUF, and folders "
        "such as `original/`. A model.py, an image of your own and the option `load_format` get "
        "all files.",
        examples=[["*.json", "consolidated*"]],
    ),
]


class SampleSource(Section):
    """A small model in this repository that the embedded AWS serves."""

    path: ProjectPath = Field(
        description="Directory with the model's files, relative to the project.",
        examples=["samples/gpt2-autocomplete/model"],
    )


class ReleaseSource(Section):
    """The compiled model that a real environment serves."""

    path: ProjectPath = Field(
        description="Directory with the engine, tokenizer and config, relative to the project.",
        examples=["build/gpt2-autocomplete/sm75"],
    )
    target: str = Field(
        pattern=_TARGET,
        description="Accelerator it was compiled for (`sm86`, `inf2`); it runs on no other.",
        examples=["sm75"],
    )


class HubWeights(Section):
    """A repository on the Hugging Face Hub, at one commit."""

    source: Literal["hub"] = Field(description="Kind of source.", examples=["hub"])
    repository: str = Field(
        pattern=r"^[\w.-]+(/[\w.-]+)?$",
        max_length=96,
        description="`OWNER/NAME`.",
        examples=["google/flan-t5-xxl"],
    )
    revision: str = Field(
        pattern=r"^[0-9a-f]{40}$",
        description="Commit, all 40 digits. A branch is not accepted, because its content can"
        " change.",
        examples=["ae7c9136adc7555eeccc78cdd960dfd60fb346ce"],
    )
    allow_patterns: _Patterns = Field(
        None,
        description="Files to take, as shell patterns. The default is what a loader reads: weights "
        "in one format, configs, tokenizers and chat templates. Python files come along where a "
        "config has `auto_map`. Files are taken from the top, and from folders that modules.json "
        "or model_index.json names.",
        examples=[["*.json", "*.safetensors"]],
    )


class S3Weights(Section):
    """Files that lie in S3 already; publishing copies them, verified, to the artifact bucket."""

    source: Literal["s3"] = Field(description="Kind of source.", examples=["s3"])
    uri: S3Prefix = Field(
        description="Prefix with its final slash.", examples=["s3://my-models/flan-t5-xxl/"]
    )
    allow_patterns: _FolderPatterns = None


class PathWeights(Section):
    """Files on the machine that publishes."""

    source: Literal["path"] = Field(description="Kind of source.", examples=["path"])
    path: ProjectPath = Field(
        description="Directory, relative to the project.", examples=["build/flan-t5-xxl"]
    )
    allow_patterns: _FolderPatterns = None


Weights = Annotated[HubWeights | S3Weights | PathWeights, Field(discriminator="source")]


class Compile(Section):
    """Compiles the weights for the endpoint's accelerator when they are published."""

    instance: InstanceType = Field(
        description="Instance type of the training job that compiles. For TensorRT and LMI it"
        " needs the endpoint's GPU; Neuron compiles on a CPU. LMI needs as many "
        "GPUs as one copy of the model.",
        examples=["ml.g5.2xlarge"],
    )
    max_runtime_seconds: int = Field(
        7200, ge=60, le=432_000, description="The job is stopped after this time.", examples=[7200]
    )
    volume_size_gb: int = Field(
        100, ge=1, le=16_384, description="Disk of the job.", examples=[100]
    )


class Artifacts(Section):
    """Where the model's files come from. An environment says which of the two it deploys."""

    sample: SampleSource | None = Field(
        None,
        description="Small model, deployed where the environment says `artifacts: sample`, as"
        " `local` does.",
    )
    release: ReleaseSource | None = Field(
        None,
        description="Files that are compiled already, deployed where the environment says "
        "`artifacts: release`.",
    )
    weights: Weights | None = Field(
        None,
        description="Checkpoint, in place of `release`. It is published as it is, or compiled.",
    )
    size_gb: float | None = Field(
        None,
        gt=0,
        le=100_000,
        allow_inf_nan=False,
        description="Size of the weights. Checks of disks and timeouts use it until the lock "
        "has the real size.",
        examples=[44.5],
    )
    compile: Compile | None = Field(
        None, description="Without it the weights are served as they are."
    )
    accept_eula: bool = Field(
        False,
        description="Tells SageMaker that you accept the licence of the model data "
        "(`AcceptEula`). Read the licence first: nothing sets it for you.",
        examples=[True],
    )
    isolated: bool = Field(
        False,
        description="Keeps the published files under a prefix and a key of the model's own, "
        "which no other model's role can read. The stack `artifacts-NAME` makes "
        "the key.",
        examples=[True],
    )
    key_arn: str | None = Field(
        None,
        pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$",
        description="Existing KMS key to use for an isolated model. Without it the stack "
        "`artifacts-NAME` makes a key. The key's policy has to leave access to "
        "IAM.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )
