"""`serving` of the container `custom`: an image of the user's own."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Environment, ProjectPath, Section
from slipway.config.sections.serving.shared import Dtype


class LocalProgram(Section):
    """What stands for an image of your own on the embedded AWS, which pulls no image."""

    program: list[str] = Field(
        min_length=1,
        description="Program and arguments that serve, as the image's `ENTRYPOINT`. `serve` is "
        "added, as SageMaker adds it. The port to listen at is in `SAGEMAKER_BIND_TO_PORT`, and "
        "the model's files are in `SM_MODEL_DIR`.",
        examples=[["python", "server.py"]],
    )
    directory: ProjectPath = Field(
        ".",
        description="Folder of the project that the program starts in.",
        examples=["containers/search"],
    )


class PrivateRegistry(Section):
    """A Docker registry in the endpoint's VPC, in place of ECR. It needs a public certificate."""

    credentials_function_arn: str | None = Field(
        None,
        pattern=r"^arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[a-zA-Z0-9_-]+"
        r"(:[a-zA-Z0-9_-]+)?$",
        description="Lambda function that returns user and password of the registry. The "
        "execution role may call it. Without it the registry lets everyone in.",
        examples=["arn:aws:lambda:eu-west-1:123456789012:function:registry-credentials"],
    )


class CustomServing(Section):
    """An image of your own that keeps SageMaker's contract: port 8080, /ping, /invocations."""

    container: Literal["custom"] = Field(description="Container family.", examples=["custom"])
    image_uri: str = Field(
        pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]{1,5})?/[a-z0-9._/-]+"
        r"(:[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}|@sha256:[0-9a-f]{64})$",
        max_length=255,
        description="Image in ECR, with its digest or tag, in the endpoint's region. A tag can "
        "move, so the plan warns of it. SageMaker pulls no image from another region.",
        examples=["123456789012.dkr.ecr.eu-west-1.amazonaws.com/search:1.4.2"],
    )
    private_registry: PrivateRegistry | None = Field(
        None, description="Needed where `image_uri` is in no ECR."
    )
    model_data_object: str | None = Field(
        None,
        pattern=r"^[\w.-]+(/[\w.-]+)*$",
        max_length=255,
        description="The one published file that is the model data. SageMaker extracts a "
        "`.tar.gz`, and puts any other file into `/opt/ml/model`. Without it all files are.",
        examples=["model.tar.gz"],
    )
    cuda_version: str | None = Field(
        None,
        pattern=r"^[0-9]+\.[0-9]+$",
        description="CUDA version of the image. It decides which host image fits.",
        examples=["12.4"],
    )
    dtype: Dtype | None = Field(
        None, description="Precision of the weights, for the memory estimate.", examples=["fp16"]
    )
    environment: Environment = Field(
        default_factory=dict,
        max_length=100,
        description="Variables of the container.",
        examples=[{"LOG_LEVEL": "info"}],
    )
    local: LocalProgram | None = Field(
        None,
        description="Program that serves on the embedded AWS. Without it an image of your own "
        "serves in an account only.",
        examples=[{"program": ["python", "server.py"]}],
    )
