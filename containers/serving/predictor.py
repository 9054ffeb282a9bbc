"""What a model family supplies to the serving core."""

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar, runtime_checkable

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
ParsedT_co = TypeVar("ParsedT_co", covariant=True)
RenderedT_contra = TypeVar("RenderedT_contra", contravariant=True)


class ModelLoadError(Exception):
    """The model directory or the hardware cannot serve; the message is one the operator can act on.

    It ends the process with exit code 1 and one line in the log. Any other exception out of
    `Model.load` is a bug of ours and is logged with its traceback.
    """


class ModelLostError(Exception):
    """Nothing can be computed any more, such as after an error of the GPU.

    The requests in the batch fail and the process ends with exit code 1: whoever started it starts
    another one, while a process that went on would fail every request and look healthy.
    """


class Model(Protocol[ParsedT_co, RenderedT_contra]):
    """What every model has; it is a `Predictor` or a `StepwisePredictor` besides.

    `load` and what computes run on one and the same thread (CUDA contexts and many engines belong
    to the thread that made them), never at the same time. `parse` and `render` run on other
    threads meanwhile, so they may only read what `load` left.
    """

    def load(self, model_dir: Path) -> None:
        """Makes the model ready, warm-up included; called once, before anything else.

        Raises:
            ModelLoadError: the directory cannot be served; every problem is in the message.
        """

    def parse(self, body: bytes) -> tuple[ParsedT_co, ...]:
        """Checks a request body in full, so that a bad request never joins a batch.

        Returns:
            What the model computes for this request, at least one; each may run in another batch.

        Raises:
            InvalidRequestError: the body is not a valid request.
        """

    def render(self, outputs: Sequence[RenderedT_contra]) -> bytes:
        """Returns the JSON body that answers a request with these outputs."""


class Predictor(Model[InputT, OutputT], Protocol[InputT, OutputT]):
    """A model that answers batches, each computed in one go."""

    def predict(self, batch: Sequence[InputT]) -> Sequence[OutputT]:
        """Computes one output per input, in order.

        An exception fails every request that has an input in this batch.
        """


@runtime_checkable
class ConcurrentPredictor(Predictor[InputT, OutputT], Protocol[InputT, OutputT]):
    """A model with several devices, which computes several batches at a time.

    `predict` is called by several threads then, and `load` by another one.

    Attributes:
        lost: ends with a `ModelLostError` when nothing can be computed any more, also while nothing
            is asked for.
    """

    lost: Future[None]

    @property
    def concurrent_batches(self) -> int:
        """Most batches at a time; read anew for each, and of no account before `load`."""

    def choose(self, waiting: Sequence[InputT], most: int) -> Sequence[int]:
        """Chooses the inputs of the next batch.

        Args:
            waiting: in the order of arrival, at least one; of a long queue the first ones.
            most: inputs of a batch.

        Returns:
            Their indices, ascending and at most `most`, the first input's among them: whoever has
            waited the longest is never passed over.
        """

    def renders_long(self, outputs: Sequence[OutputT]) -> bool:
        """Returns whether `render` takes more than about a millisecond.

        It runs on a thread of its own then; a short one costs less than the way there and back.
        """

    def close(self) -> None:
        """Ends what `load` started; called once, also where `load` failed."""


@dataclass(frozen=True)
class StepResult(Generic[OutputT]):
    """What one step brought.

    Attributes:
        outputs: of the inputs that are finished; they have left the batch.
        pieces: what became known of inputs whose request is streamed, ready to be sent.
    """

    outputs: Mapping[Hashable, OutputT] = field(default_factory=dict)
    pieces: Mapping[Hashable, bytes] = field(default_factory=dict)


@runtime_checkable
class StepwisePredictor(Model[InputT, OutputT], Protocol[InputT, OutputT]):
    """A model that computes in steps, between which inputs join its batch and leave it.

    An exception out of `join` or `step` fails every input of the batch, and `clear` follows.
    """

    def is_streamed(self, inputs: Sequence[InputT]) -> bool:
        """Returns whether the request asked for its answer piece by piece, as it is computed."""

    def rows(self, value: InputT) -> int:
        """Returns how many of the batch's rows the input takes."""

    def join(self, inputs: Mapping[Hashable, InputT]) -> StepResult[OutputT]:
        """Adds inputs, each under a key of its own, and takes their first step."""

    def step(self) -> StepResult[OutputT]:
        """Takes a step in every input of the batch."""

    def leave(self, keys: Sequence[Hashable]) -> None:
        """Takes inputs out that nobody waits for; a key that is not there is passed over."""

    def clear(self) -> None:
        """Takes every input out."""
