"""`endpoint.prefix_routing`: requests that begin alike go to one instance."""

from pydantic import Field

from slipway.config.sections.base import Section


class PrefixRouting(Section):
    """Sends requests with the same beginning to one instance, whose cache holds it already."""

    prefix_length: int = Field(
        ge=1024,
        le=65_536,
        description="Bytes of a request's body, from its start, that are compared. SageMaker "
        "compares characters of the messages in its API in OpenAI's form. Enough for a shared "
        "system prompt and the beginning of what differs.",
        examples=[4096],
    )
    concurrency_threshold: int = Field(
        ge=1,
        le=1024,
        description="Requests in flight on the instance, or on the copy, from which another one "
        "takes the next request.",
        examples=[16],
    )
