"""`serving` of the container `lookup`."""

from typing import Literal

from pydantic import Field

from slipway.families import Section

REPOSITORY = "lookup-server"


class LookupServing(Section):
    """A server that answers from a table, in an image of the endpoint's account."""

    container: Literal["lookup"] = Field(description="Container family.", examples=["lookup"])
    version: str = Field(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$",
        description=f"Tag of the image in the repository `{REPOSITORY}`.",
        examples=["1.0.0"],
    )
    workers: int = Field(
        1, ge=1, le=64, description="Requests that one instance answers at a time.", examples=[2]
    )
