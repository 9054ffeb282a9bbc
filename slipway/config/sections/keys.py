"""How environments.yaml names the KMS key that encrypts something."""

from typing import Annotated

from pydantic import Field

# Stands for the key of the artifact bucket, whose id nobody knows before the foundation made it.
ARTIFACT_KEY = "artifact"
_ARN = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+"

KeyArn = Annotated[str, Field(pattern=rf"^{_ARN}$")]
KeyChoice = Annotated[str, Field(pattern=rf"^({ARTIFACT_KEY}|{_ARN})$")]


def is_of_region(key: str, region: str) -> bool:
    """Returns whether resources of a region can be encrypted with a key, an ARN or `artifact`."""
    return key == ARTIFACT_KEY or key.split(":")[3] == region
