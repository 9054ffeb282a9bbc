"""A checked request in the terms of the decode loop; every form of body becomes one."""

from dataclasses import dataclass

from containers.tensorrt.answers import AnswerForm
from containers.tensorrt.beam_search import Beams
from containers.tensorrt.sampling import Sampling


@dataclass(frozen=True)
class GenerationTask:
    """The texts to continue, and how.

    Attributes:
        texts: at least one.
        form: writes the answers.
        max_new_tokens: most new tokens of an answer; None for the endpoint's default.
        length_field: the client's name for `max_new_tokens`, for problems.
        sampling: settings of sampling; None samples nothing.
        beams: settings of a beam search; not together with `sampling`.
        sequences: sampled answers to each text.
        stop_texts: texts before which an answer is cut.
        has_prompt: whether each answer begins with its text.
        is_streamed: whether the one answer to the one text is sent piece by piece.
        adds_special_tokens: whether the tokenizer adds its special tokens. The text of a chat
            template has them already.
    """

    texts: tuple[str, ...]
    form: AnswerForm
    max_new_tokens: int | None = None
    length_field: str = "max_new_tokens"
    sampling: Sampling | None = None
    beams: Beams | None = None
    sequences: int = 1
    stop_texts: tuple[str, ...] = ()
    has_prompt: bool = False
    is_streamed: bool = False
    adds_special_tokens: bool = True
