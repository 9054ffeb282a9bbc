"""What a model family supplies to the serving core."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class ModelLoadError(Exception):
    """The model directory or the hardware cannot serve; the message is one the operator can act on.

    It ends the process with exit code 1 and one line in the log. Any other exception out of
    `Predictor.load` is a bug of ours and is logged with its traceback.
    """


class Predictor(Protocol[InputT, OutputT]):
    """A model that answers batches.

    `load` and `predict` run on one and the same thread (CUDA contexts and many engines belong to
    the thread that made them), never at the same time. `parse` and `render` run on other threads
    while a batch computes, so they may only read what `load` left.
    """

    def load(self, model_dir: Path) -> None:
        """Makes the model ready, warm-up included; called once, before anything else.

        Raises:
            ModelLoadError: the directory cannot be served; every problem is in the message.
        """

    def parse(self, body: bytes) -> tuple[InputT, ...]:
        """Checks a request body in full, so that a bad request never joins a batch.

        Returns:
            What the model computes for this request, at least one; each may run in another batch.

        Raises:
            InvalidRequestError: the body is not a valid request.
        """

    def predict(self, batch: Sequence[InputT]) -> Sequence[OutputT]:
        """Computes one output per input, in order.

        An exception fails every request that has an input in this batch.
        """

    def render(self, outputs: Sequence[OutputT]) -> bytes:
        """Returns the JSON body that answers a request with these outputs."""
