"""Fields that Slipway's own containers share: batches, queue, and the time of a request."""

from typing import Any

from pydantic import Field

# Any: pydantic gives each section a copy, with the section's own annotation.
MAX_BATCH_DELAY_MILLISECONDS: Any = Field(
    5,
    ge=0,
    le=1000,
    description="Longest time that a request waits for others to share its batch.",
    examples=[5],
)
MAX_QUEUE_LENGTH: Any = Field(
    256,
    ge=1,
    le=100_000,
    description="Largest number of requests that may wait. One more is answered 503.",
    examples=[256],
)
REQUEST_TIMEOUT_SECONDS: Any = Field(
    55,
    ge=1,
    le=60,
    description="A request without an answer by then is answered 504. SageMaker's own limit is 60.",
    examples=[55],
)
