"""The interface between a model family and the serving core."""

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
    """The model directory or the hardware cannot serve; the message tells an operator what to do.

    It ends the process with exit code 1 and one line in the log. Any other exception out of
    `Model.load` is a bug of Slipway and is logged with its traceback.
    """


class ModelLostError(Exception):
    """The model can never compute again, for example after an error of the GPU.

    The requests in the batch fail and the process ends with exit code 1, so that its supervisor
    starts another process. A process that went on would fail every request and still look healthy.
    """


class Model(Protocol[ParsedT_co, RenderedT_contra]):
    """The methods of every model; a model is also a `Predictor` or a `StepwisePredictor`.

    `load` and the computing methods run on the same thread, never at the same time. CUDA contexts
    and many engines belong to the thread that made them. `parse` and `render` run on other threads
    meanwhile, so they may only read what `load` left.
    """

    def load(self, model_dir: Path) -> None:
        """Makes the model ready, warm-up included; called once, before any other method.

        Raises `ModelLoadError` with every problem if the directory cannot be served.
        """

    def parse(self, body: bytes) -> tuple[ParsedT_co, ...]:
        """Checks a request body in full, so that a bad request never joins a batch.

        Returns the inputs that the model computes for this request, at least one; they may run in
        different batches. Raises `InvalidRequestError` for a body that is not a valid request.
        """

    def render(self, outputs: Sequence[RenderedT_contra]) -> bytes:
        """Returns the JSON body that answers a request with these outputs."""


class Predictor(Model[InputT, OutputT], Protocol[InputT, OutputT]):
    """A model that answers batches, each computed in one call."""

    def predict(self, batch: Sequence[InputT]) -> Sequence[OutputT]:
        """Computes one output per input, in order.

        An exception fails every request that has an input in this batch.
        """


@runtime_checkable
class ConcurrentPredictor(Predictor[InputT, OutputT], Protocol[InputT, OutputT]):
    """A model with several devices, which computes several batches at a time.

    Several threads call `predict`, and another thread calls `load`. `lost` ends with a
    `ModelLostError` when the model can never compute again, even while no request is running.
    """

    lost: Future[None]

    @property
    def concurrent_batches(self) -> int:
        """Returns the most batches at a time; read once, after `load`."""

    @property
    def batches_ahead(self) -> int:
        """Returns the full batches that may wait at the devices; read once, after `load`."""

    def choose(self, waiting: Sequence[InputT], most: int) -> Sequence[int]:
        """Returns the indices of the inputs of the next batch, at most `most`, ascending.

        `waiting` has queued inputs in order of arrival, of a long queue only the first ones. Index
        0 is always chosen, so that the input that has waited longest is never passed over.
        """

    def renders_long(self, outputs: Sequence[OutputT]) -> bool:
        """Returns whether `render` takes more than about a millisecond.

        A long call runs on a thread of its own; a short call costs less than a switch of threads.
        """

    def close(self) -> None:
        """Ends everything that `load` started; called once, even if `load` failed."""


@dataclass(frozen=True)
class StepResult(Generic[OutputT]):
    """The results of one step, by key.

    Inputs with outputs are finished, and have left the batch. Each piece is one or more server-sent
    events.
    """

    outputs: Mapping[Hashable, OutputT] = field(default_factory=dict)
    pieces: Mapping[Hashable, bytes] = field(default_factory=dict)


@runtime_checkable
class StepwisePredictor(Model[InputT, OutputT], Protocol[InputT, OutputT]):
    """A model that computes in steps; inputs join and leave its batch between steps.

    After an exception out of `join` or `step`, every input of the batch fails and `clear` is
    called.
    """

    def parses_long(self, body: bytes) -> bool:
        """Returns whether `parse` may take more than a few milliseconds even if the body is short.

        A long call runs on a thread of its own.
        """

    def is_streamed(self, inputs: Sequence[InputT]) -> bool:
        """Returns whether the request asked for its answer piece by piece."""

    def rows(self, value: InputT) -> int:
        """Returns how many of the batch's rows the input takes."""

    def join(self, inputs: Mapping[Hashable, InputT]) -> StepResult[OutputT]:
        """Adds inputs, each under its own key, and computes their first step."""

    def step(self) -> StepResult[OutputT]:
        """Computes one step for every input of the batch."""

    def leave(self, keys: Sequence[Hashable]) -> None:
        """Removes inputs whose requests have ended; unknown keys are ignored."""

    def clear(self) -> None:
        """Removes every input."""
