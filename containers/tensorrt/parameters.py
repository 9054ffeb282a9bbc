"""The parameters of a request, the limits that an endpoint sets for them, and a checked request.

`requests` defines which parameters go together.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

from containers.serving.fields import Choice, Flag, Number, Text, Texts, WholeNumber
from containers.serving.settings import ServingSettings
from containers.tensorrt.answers import AnswerForm
from containers.tensorrt.beam_search import Beams
from containers.tensorrt.sampling import Sampling
from containers.tensorrt.settings import GenerationSettings

MAX_SEED: Final = 2**63 - 1
MAX_TOP_K: Final = 1_000_000
_MAX_TEMPERATURE: Final = 100.0
# Logits divided by less leave the range in which float64 can still tell them apart.
MIN_TEMPERATURE: Final = 0.001
# Every new token is checked against each stop text.
MAX_STOP_TEXTS: Final = 16
_MAX_STOP_CHARACTERS: Final = 1000
# A length to a higher power exceeds the largest float64.
_MAX_LENGTH_PENALTY: Final = 10.0
PER_BATCH: Final = ", the endpoint's max_batch_size"


@dataclass(frozen=True)
class RequestLimits:
    generation: GenerationSettings
    max_batch_size: int = ServingSettings.max_batch_size
    max_texts: int = ServingSettings.max_queue_length  # the length of the queue


def max_new_tokens(limits: RequestLimits) -> int:
    return limits.generation.max_new_tokens


def max_batch_size(limits: RequestLimits) -> int:
    return limits.max_batch_size


def max_texts(limits: RequestLimits) -> int:
    return limits.max_texts


class _StopText(Text):
    """A short string, whose length problem has both limits."""

    def length_problem(self, characters: int) -> str:
        limits = f"{self.min_characters} to {self.max_characters}"
        return f" has {characters} characters: it must have {limits}."


STOP_TEXT: Final = _StopText(max_characters=_MAX_STOP_CHARACTERS)


class Parameters(NamedTuple):
    """The parameters of a request; those of beams are as in `transformers.GenerationConfig`."""

    max_new_tokens: Annotated[
        int | None,
        WholeNumber(1, max_new_tokens),
        "Most new tokens of an answer; without it the endpoint's default_new_tokens.",
    ]
    do_sample: Annotated[
        bool, Flag(default=False), "Draws each token; otherwise it is the most likely one."
    ]
    temperature: Annotated[
        float,
        Number(MIN_TEMPERATURE, _MAX_TEMPERATURE, default=1.0),
        "Evens out the tokens' chances above 1, sharpens them below. With do_sample.",
    ]
    top_k: Annotated[
        int | None,
        WholeNumber(1, MAX_TOP_K),
        "Draws among that many most likely tokens; without it among all. With do_sample.",
    ]
    top_p: Annotated[
        float,
        Number(0.0, 1.0, minimum_is_allowed=False, default=1.0),
        "Draws among the most likely tokens that together have this chance. With do_sample.",
    ]
    seed: Annotated[
        int | None,
        WholeNumber(0, MAX_SEED),
        "The same seed draws the same tokens; without it another one for each request. "
        "With do_sample.",
    ]
    stop: Annotated[
        tuple[str, ...] | None,
        Texts(STOP_TEXT, 1, MAX_STOP_TEXTS),
        "The answer ends just before the first of these texts. Not with beams.",
    ]
    num_return_sequences: Annotated[
        int,
        WholeNumber(1, max_batch_size, reason=PER_BATCH, default=1),
        "Answers to each text. Above 1 with do_sample, or with as many beams.",
    ]
    num_beams: Annotated[
        int,
        WholeNumber(1, max_batch_size, reason=PER_BATCH, default=1),
        "Above 1: beam search, without do_sample.",
    ]
    length_penalty: Annotated[
        float,
        Number(-_MAX_LENGTH_PENALTY, _MAX_LENGTH_PENALTY, default=1.0),
        "Above 0 favours long answers, below 0 short ones. With beams.",
    ]
    early_stopping: Annotated[
        bool | Literal["never"],
        Choice((True, False, "never"), words='true, false or "never"', default=False),
        "When a beam search ends, as transformers defines it. With beams.",
    ]
    return_full_text: Annotated[bool, Flag(default=False), "Puts the prompt before its answer."]

    @property
    def sampling(self) -> Sampling | None:
        if not self.do_sample:
            return None
        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)

    @property
    def beams(self) -> Beams | None:
        if self.num_beams == 1:
            return None
        return Beams(
            self.num_beams, self.num_return_sequences, self.length_penalty, self.early_stopping
        )

    @property
    def sequences(self) -> int:
        return max(self.num_beams, self.num_return_sequences)


@dataclass(frozen=True)
class GenerationTask:
    """The texts to continue, and how; a streamed request has one text and one answer.

    The text of a chat template has the tokenizer's special tokens already.
    """

    texts: tuple[str, ...]  # at least one
    form: AnswerForm
    max_new_tokens: int | None = None  # None for the endpoint's default
    length_field: str = "max_new_tokens"  # the client's name for `max_new_tokens`, for problems
    sampling: Sampling | None = None
    beams: Beams | None = None  # not with `sampling`
    sequences: int = 1  # sampled answers to each text
    stop_texts: tuple[str, ...] = ()
    has_prompt: bool = False  # whether each answer begins with its text
    is_streamed: bool = False
    adds_special_tokens: bool = True
