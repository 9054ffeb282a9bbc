"""`endpoint.serverless`: memory and concurrency of an endpoint without instances."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Section


class Serverless(Section):
    """AWS runs a container for each request at a time, and none while there are no requests.

    Sources, read 2026-11-29: ProductionVariantServerlessConfig in botocore 1.44.5 and
    https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html
    """

    memory_size_mb: Literal[1024, 2048, 3072, 4096, 5120, 6144] = Field(
        description="Main memory of each container. Processors are in proportion to it.",
        examples=[2048],
    )
    max_concurrency: int = Field(
        ge=1,
        le=200,
        description="Most requests at a time. AWS refuses further ones with ThrottlingException.",
        examples=[5],
    )
    provisioned_concurrency: int | None = Field(
        None,
        ge=1,
        le=200,
        description="Containers that stay started, which AWS bills by the hour. Without it the "
        "first request after a pause waits for a start.",
        examples=[1],
    )

    @property
    def summary(self) -> str:
        warm = self.provisioned_concurrency
        kept = "" if warm is None else f", {warm} kept started"
        noun = "request" if self.max_concurrency == 1 else "requests"
        return f"serverless, {self.memory_size_mb} MB, {self.max_concurrency} {noun} at most{kept}"
