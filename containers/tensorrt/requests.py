"""Requests in the form of Hugging Face's text-generation task, checked in full, and all forms.

`{"inputs": TEXT or [TEXT, ...], "parameters": {...}, "stream": false}`. `return_full_text` is false
unless the request says otherwise, as in the task's specification
(https://huggingface.co/docs/inference-providers/tasks/text-generation). Three things are errors
only here: an unknown parameter, a parameter that would have no effect, and two parameters that
cannot go together.

A request that asks for more than one sequence per text must fit one batch. Its texts times the
greater of `num_beams` and `num_return_sequences` are at most `max_batch_size`.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple

from containers.serving.fields import Flag, Text
from containers.serving.json_requests import parse_json_object
from containers.serving.objects import Inputs, Object, OneOrMany
from containers.serving.problems import Problems
from containers.tensorrt.answers import HuggingFaceForm
from containers.tensorrt.openai.chat_template import ChatTemplate
from containers.tensorrt.openai.requests import OpenAiRequests
from containers.tensorrt.parameters import GenerationTask, Parameters, RequestLimits, max_texts

_SAMPLING_PARAMETERS: Final = ("temperature", "top_k", "top_p", "seed")
_BEAM_PARAMETERS: Final = ("length_penalty", "early_stopping")


def _inputs_meaning(limits: RequestLimits) -> str:
    longest = limits.generation.max_input_tokens
    tokens = f"{longest} tokens" if longest else "as many tokens as the model takes"
    return (
        f"One text or several, each of at most {tokens}. Several sequences to each text must fit "
        f"one batch: {limits.max_batch_size} sequences together."
    )


def _parameters_meaning(limits: RequestLimits) -> str:
    return (
        "A parameter that is not known, would have no effect or contradicts another one is an "
        f"error. Without max_new_tokens it is {limits.generation.default_new_tokens}, or what the "
        "model's positions leave."
    )


class GenerationRequest(NamedTuple):
    """A request; limits in tokens are checked later, with the tokenizer."""

    inputs: Annotated[
        Inputs[str],
        OneOrMany(Text(), max_texts, is_required=True),
        _inputs_meaning,
    ]
    parameters: Annotated[
        Parameters,
        Object(Parameters, "Parameters", noun="parameter"),
        _parameters_meaning,
    ]
    stream: Annotated[bool, Flag(default=False), "Sends the one answer to one text piece by piece."]

    @property
    def task(self) -> GenerationTask:
        asked = self.parameters
        return GenerationTask(
            texts=self.inputs.values,
            form=HuggingFaceForm(),
            max_new_tokens=asked.max_new_tokens,
            sampling=asked.sampling,
            beams=asked.beams,
            sequences=1 if asked.beams else asked.num_return_sequences,
            stop_texts=asked.stop or (),
            has_prompt=asked.return_full_text,
            is_streamed=self.stream,
        )


class GenerationRequests:
    def __init__(self, limits: RequestLimits) -> None:
        self.description = Object(GenerationRequest, "TextGeneration").within(limits)
        self._limits = limits

    # Any: JSON.
    def read(self, document: Mapping[str, Any]) -> GenerationRequest:
        """Returns the request; an `InvalidRequestError` names every problem."""
        problems = Problems()
        request = self.description.convert(document, "", problems)
        values = document.get("parameters")
        given = values if isinstance(values, dict) else {}
        for problem in _contradictions(request, given, problems, self._limits):
            problems.add("", problem)
        problems.finish()
        return request


def _contradictions(
    request: GenerationRequest,
    given: Collection[str],
    problems: Problems,
    limits: RequestLimits,
) -> Iterator[str]:
    """Yields the problems of fields that do not go together; `given` are the set parameters.

    A field with a problem of its own is left out, because its value is unknown.
    """
    asked = request.parameters
    beams, answers, sequences = asked.num_beams, asked.num_return_sequences, asked.sequences
    if not problems.concern("do_sample", "num_beams"):
        if asked.do_sample and beams > 1:
            yield f"do_sample=true and num_beams={beams} do not go together: leave one of them out."
        idle = [name for name in _SAMPLING_PARAMETERS if name in given and not asked.do_sample]
        if idle:
            remedy = (
                f"num_beams={beams} searches without chance; leave one of them out."
                if beams > 1
                else "set do_sample to true as well."
            )
            yield f"{', '.join(idle)} would have no effect: {remedy}"
    if not problems.concern("num_beams"):
        idle = [name for name in _BEAM_PARAMETERS if name in given and beams == 1]
        if idle:
            yield f"{', '.join(idle)} would have no effect: set num_beams above 1 as well."
        if asked.stop and beams > 1:
            yield f"stop and num_beams={beams} do not go together: leave one of them out."
    if (
        request.stream
        and not problems.concern("inputs")
        and (texts := len(request.inputs.values)) > 1
    ):
        yield (
            f"stream=true and inputs of {texts} texts do not go together: send one text, or "
            "set stream to false."
        )
    if problems.concern("num_beams", "num_return_sequences"):
        return
    if answers > beams > 1:
        yield (
            f"num_return_sequences={answers} exceeds num_beams={beams}: a search has one answer "
            "per beam; raise num_beams or ask for fewer."
        )
    if answers > 1 and beams == 1 and not asked.do_sample and not problems.concern("do_sample"):
        yield (
            f"num_return_sequences={answers} and greedy decoding do not go together, which has one "
            f"answer: set do_sample to true, or num_beams to {answers} or more."
        )
    if request.stream and sequences > 1:
        yield (
            f"stream=true and {sequences} sequences (num_beams or num_return_sequences) do not go "
            "together: leave them out, or set stream to false."
        )
    if (
        sequences > 1
        and not problems.concern("inputs")
        and (texts := len(request.inputs.values)) * sequences > limits.max_batch_size
    ):
        yield (
            f"inputs holds {texts} texts of {sequences} sequences each (num_beams or "
            f"num_return_sequences), {texts * sequences} together; the endpoint "
            f"computes at most {limits.max_batch_size} at a time (max_batch_size): send at most "
            f"{limits.max_batch_size // sequences}, or ask for fewer sequences."
        )


class BodyReader:
    """Reads the requests to one endpoint.

    A body with `prompt` is OpenAI's completion, and a body with `messages` is OpenAI's chat. Any
    other body is Hugging Face's, with `inputs`. AWS's LMI images decide in the same way.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self.text_generation = GenerationRequests(limits)
        self.openai = OpenAiRequests(limits)

    def read(self, body: bytes, template: ChatTemplate | str) -> GenerationTask:
        """Returns the task of a request.

        Instead of a chat template there may be the reason why the model has none. An
        `InvalidRequestError` names every problem: the field, its value and the allowed values.
        """
        document = parse_json_object(body)
        if "prompt" in document:
            return self.openai.read_completion(document)
        if "messages" in document and "inputs" not in document:
            return self.openai.read_chat(document, template)
        return self.text_generation.read(document).task
