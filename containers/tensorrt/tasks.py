"""A checked request in the terms of the decode loop; every form of body becomes one."""

from dataclasses import dataclass

from containers.tensorrt.answers import AnswerForm
from containers.tensorrt.beam_search import Beams
from containers.tensorrt.sampling import Sampling


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
