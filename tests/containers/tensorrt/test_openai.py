"""Requests and answers in OpenAI's forms: what is read, what is refused, what is answered."""

import json
import time

import pytest

from containers.serving.errors import InvalidRequestError
from containers.tensorrt.openai.chat_template import ChatTemplate
from containers.tensorrt.openai.requests import Chat, Completion
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.requests import BodyReader
from containers.tensorrt.sampling import Sampling
from containers.tensorrt.settings import GenerationSettings
from tests.containers.tensorrt.sample_model import (
    answer,
    loaded,
    model_with_template,
)
from tests.containers.tensorrt.sample_model import stream as events_of
from tests.support.servers import captured_logs

LIMITS = RequestLimits(GenerationSettings(max_new_tokens=42), 8, 20)
READER = BodyReader(LIMITS)
PLAIN = ChatTemplate("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}", {})
USER = {"role": "user", "content": "Hello"}
WHOLE = " name for the Amazon S3 bucket."


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    return loaded(model_with_template(tmp_path_factory.mktemp("chat") / "model"), max_batch_size=8)


def read(body):
    return READER.read(json.dumps(body).encode(), PLAIN)


def stream(predictor, body):
    *chunks, end = events_of(predictor, body)
    assert end == " [DONE]"
    assert all(chunk.startswith(" {") for chunk in chunks)
    return [json.loads(chunk) for chunk in chunks]


def refusal(body):
    with pytest.raises(InvalidRequestError) as caught:
        read(body)
    return str(caught.value)


def test_a_completion_has_the_answer_of_the_other_form(predictor):
    before = int(time.time())
    found = answer(predictor, {"prompt": "Amazon S3 bucket", "temperature": 0, "model": "mine"})
    assert found.pop("id").startswith("cmpl-")
    assert before <= found.pop("created") <= time.time()
    assert found == {
        "object": "text_completion",
        "model": "mine",
        "choices": [{"index": 0, "text": WHOLE, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 8, "total_tokens": 12},
    }
    [same] = answer(predictor, {"inputs": "Amazon S3 bucket"})
    assert same == {"generated_text": WHOLE}


def test_a_chat_is_answered_with_the_next_message(predictor):
    body = {"messages": [USER], "temperature": 0, "max_tokens": 3}
    found = answer(predictor, body)
    assert found.pop("id").startswith("chatcmpl-")
    assert isinstance(found.pop("created"), int)
    [choice] = found.pop("choices")
    continued = {"prompt": "Hello\nAmazon S3 bucket", "temperature": 0, "max_tokens": 3}
    [same] = answer(predictor, continued)["choices"]
    assert choice.pop("message") == {"role": "assistant", "content": same["text"]}
    assert choice == {"index": 0, "logprobs": None, "finish_reason": "length"}
    usage = found.pop("usage")
    assert usage["completion_tokens"] == 3
    assert usage["total_tokens"] == usage["prompt_tokens"] + 3
    assert found == {"object": "chat.completion", "model": "slipway"}


def test_the_choices_of_several_prompts_are_in_their_order(predictor):
    body = {"prompt": ["Amazon S3 bucket", "The name of the"], "n": 3, "seed": 1, "max_tokens": 5}
    found = answer(predictor, body)
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2, 3, 4, 5]
    alone = [
        answer(predictor, {**body, "prompt": prompt, "n": 1, "temperature": 0})["usage"]
        for prompt in body["prompt"]
    ]
    # Each prompt counts once, and each answer counts.
    assert found["usage"]["prompt_tokens"] == sum(usage["prompt_tokens"] for usage in alone)
    assert found["usage"]["completion_tokens"] <= 6 * 5
    first = answer(predictor, {**body, "prompt": "Amazon S3 bucket", "n": 1})
    assert found["choices"][0]["text"] == first["choices"][0]["text"]


def test_an_echo_has_the_prompt_before_the_answer(predictor):
    found = answer(predictor, {"prompt": "Amazon S3 bucket", "echo": True, "temperature": 0})
    assert found["choices"][0]["text"] == "Amazon S3 bucket" + WHOLE
    assert found["usage"]["completion_tokens"] == 8


def test_an_answer_ends_before_a_stop_text(predictor):
    for stop in (" Amazon", ["never", " Amazon"]):
        found = answer(predictor, {"prompt": "Amazon S3 bucket", "temperature": 0, "stop": stop})
        [choice] = found["choices"]
        assert (choice["text"], choice["finish_reason"]) == (" name for the", "stop")


def test_a_completion_is_streamed_in_chunks(predictor):
    chunks = stream(predictor, {"prompt": "Amazon S3 bucket", "temperature": 0})
    assert len(chunks) > 5
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == WHOLE
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]
    assert not any("usage" in chunk for chunk in chunks)


def test_the_chunks_of_a_chat_are_deltas_of_a_message(predictor):
    chunks = stream(
        predictor,
        {"messages": [USER], "temperature": 0, "stream_options": {"include_usage": True}},
    )
    whole = answer(predictor, {"messages": [USER], "temperature": 0})
    end = chunks.pop()
    assert (end["choices"], end["usage"]) == ([], whole["usage"])
    assert all(chunk["usage"] is None for chunk in chunks)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    text = "".join(delta["content"] for delta in deltas)
    assert text == whole["choices"][0]["message"]["content"]
    assert len(deltas) > 5
    assert [delta.get("role") for delta in deltas] == ["assistant"] + [None] * (len(deltas) - 1)


def test_an_answer_of_one_event_has_the_role_and_the_reason(predictor):
    [chunk] = stream(predictor, {"messages": [USER], "temperature": 0, "stop": " "})
    [choice] = chunk["choices"]
    assert choice["delta"] == {"role": "assistant", "content": ""}
    assert choice["finish_reason"] == "stop"


def test_without_a_temperature_the_answer_is_drawn():
    assert read({"prompt": "a", "seed": 7}).sampling == Sampling(1.0, None, 1.0, 7)
    asked = {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "seed": 0, "n": 2}
    task = read({"prompt": ["a", "b"], **asked})
    assert (task.sampling, task.sequences) == (Sampling(0.5, 3, 0.9, 0), 2)
    # Greedy, whatever else the request says about drawing.
    assert read({"prompt": "a", "temperature": 0, "top_p": 0.5, "seed": 1}).sampling is None


def test_both_names_of_the_limit_are_known():
    older = read({"messages": [USER], "max_tokens": 5})
    newer = read({"messages": [USER], "max_completion_tokens": 5})
    assert (older.max_new_tokens, older.length_field) == (5, "max_tokens")
    assert (newer.max_new_tokens, newer.length_field) == (5, "max_completion_tokens")
    assert read({"prompt": "a"}).max_new_tokens is None


def test_messages_go_through_the_template_as_text():
    parts = [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]
    task = read({"messages": [{"role": "system", "content": "Short."}, {**USER, "content": parts}]})
    assert task.texts == ("[system]Short.[user]One\ntwo",)
    assert not task.adds_special_tokens
    assert read({"prompt": "a"}).adds_special_tokens


def test_null_stands_for_the_default():
    names = [name for name in Completion._fields if name != "prompt"]
    assert answerless(read({"prompt": "a", **dict.fromkeys(names)})) == answerless(
        read({"prompt": "a"})
    )
    names = [name for name in Chat._fields if name != "messages"]
    asked = [{**USER, "name": None, "refusal": None, "tool_calls": None}]
    assert answerless(read({"messages": asked, **dict.fromkeys(names)})) == answerless(
        read({"messages": [USER]})
    )


def answerless(task):
    return {name: value for name, value in vars(task).items() if name != "form"}


@pytest.mark.parametrize(
    "neutral",
    [
        {"frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}},
        {"messages": [USER], "tools": [], "tool_choice": "none", "logprobs": False},
        {"messages": [USER], "response_format": {"type": "text"}, "top_logprobs": 0},
        {"best_of": 1, "suffix": "", "user": "someone", "stream_options": {"include_usage": False}},
    ],
)
def test_a_value_that_asks_for_nothing_is_accepted(neutral):
    read(({} if "messages" in neutral else {"prompt": "a"}) | neutral)


LIMIT = "the endpoint's max_batch_size"


REFUSED = {
    "prompt": [
        ({"frequency_penalty": 0.5}, "frequency_penalty is not supported: leave it out or send 0."),
        ({"presence_penalty": True}, "presence_penalty is not supported: leave it out or send 0."),
        ({"logit_bias": {"5": 1}}, "logit_bias is not supported: leave it out or send {}."),
        ({"logprobs": 0}, "logprobs is not supported: leave it out."),
        ({"best_of": 2}, "best_of is not supported: leave it out or send 1."),
        ({"suffix": "."}, 'suffix is not supported: leave it out or send "".'),
        ({"max_tokens": 43}, "max_tokens=43 is not within 1 to 42."),
        ({"n": 9}, f"n=9 is not within 1 to 8, {LIMIT}."),
        ({"temperature": 2.5}, "temperature=2.5 is not within 0 to 2."),
        ({"temperature": 0.0001}, "temperature=0.0001 is neither 0 nor within 0.001 to 2."),
        ({"stop": ["a", ""]}, "stop[1] has 0 characters: it must have 1 to 1000."),
        ({"stop": 5}, "stop must be a string or an array of strings, not a number."),
        ({"prompt": [1, 2]}, "prompt[0] must be a string, not a number. prompt[1] must be a "),
        (
            {"n": 2, "temperature": 0},
            "n=2 and temperature=0 do not go together, which has one answer: raise the "
            "temperature, or leave n out.",
        ),
        (
            {"n": 2, "stream": True},
            "stream=true and n=2 do not go together: leave one of them out.",
        ),
        (
            {"prompt": ["a", "b"], "stream": True},
            "stream=true and prompt of 2 texts do not go together: send one text, or set stream "
            "to false.",
        ),
        (
            {"prompt": ["a"] * 5, "n": 2},
            "prompt holds 5 texts of n=2 answers each, 10 together; the endpoint computes at most "
            "8 at a time (max_batch_size): send at most 4, or ask for fewer answers.",
        ),
        (
            {"echo": True, "stream": True},
            "echo=true and stream=true do not go together: leave one of them out.",
        ),
        (
            {"stream_options": {"include_usage": True}},
            "stream_options would have no effect: set stream to true as well.",
        ),
        (
            {"inputs": "a"},
            "Unknown field 'inputs'; allowed: prompt, model, max_tokens, temperature",
        ),
        ({"max_token": 5}, "Unknown field 'max_token' (did you mean max_tokens?); allowed: "),
        ({"min_p": 0.1}, "Unknown field 'min_p'"),
    ],
    "messages": [
        ({"tools": [{}]}, "tools is not supported: leave it out or send []."),
        ({"tool_choice": "auto"}, 'tool_choice is not supported: leave it out or send "none".'),
        ({"logprobs": True}, "logprobs is not supported: leave it out or send false."),
        ({"logprobs": 0}, "logprobs is not supported: leave it out or send false."),
        (
            {"response_format": {"type": "json_object"}},
            'response_format is not supported: leave it out or send {"type": "text"}.',
        ),
        (
            {"max_tokens": 1, "max_completion_tokens": 1},
            "max_tokens and max_completion_tokens are two names of one limit: leave one of them "
            "out.",
        ),
        ({"messages": []}, "messages is an empty array: it must hold at least one message."),
        ({"messages": "Hi"}, "messages must be an array of messages, not a string."),
        (
            {"messages": [USER, {"role": "tool", "content": "x"}]},
            "messages[1].role must be one of system, developer, user, assistant, not 'tool'.",
        ),
        (
            {"messages": [{"role": "user"}]},
            "messages[0].content is missing: a string or an array of text parts.",
        ),
        (
            {"messages": [{**USER, "content": [{"type": "image_url", "text": "x"}]}]},
            "messages[0].content[0].type must be one of text, not 'image_url'.",
        ),
        (
            {"messages": [{**USER, "tool_calls": [{}]}]},
            "messages[0].tool_calls is not supported: leave it out or send [].",
        ),
    ],
}


@pytest.mark.parametrize(
    ("form", "fields", "message"),
    [(form, *refused) for form in REFUSED for refused in REFUSED[form]],
    ids=lambda value: str(value)[:60],
)
def test_a_field_is_refused_by_name(form, fields, message):
    found = refusal({form: {"prompt": "a", "messages": [USER]}[form]} | fields)
    assert found == message or (not message.endswith(".") and found.startswith(message))


def test_the_length_limit_has_the_clients_name_for_it(predictor):
    text = "Amazon S3 bucket " * 25
    for name, body in (
        ("max_new_tokens", {"inputs": text, "parameters": {"max_new_tokens": 42}}),
        ("max_tokens", {"prompt": text, "max_tokens": 42}),
        (
            "max_completion_tokens",
            {"messages": [{**USER, "content": text}], "max_completion_tokens": 42},
        ),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            predictor.parse(json.dumps(body).encode())
        tokens = int(str(caught.value).split()[3])
        assert 86 < tokens < 110
        assert str(caught.value) == (
            f"Input 0 has {tokens} tokens and {name} is 42: together they exceed the model's 128 "
            f"positions; at most {128 - tokens} new tokens fit."
        )


def test_a_model_without_a_template_refuses_chats_and_answers_completions():
    predictor = loaded()
    with pytest.raises(InvalidRequestError) as caught:
        predictor.parse(json.dumps({"messages": [USER]}).encode())
    assert str(caught.value) == (
        "The model has no chat template, so the endpoint takes no messages: send prompt or inputs. "
        "A model gets a template from chat_template.jinja, or from chat_template in "
        "tokenizer_config.json, when it is published."
    )
    assert answer(predictor, {"prompt": "Amazon S3 bucket", "temperature": 0})["choices"]


def test_only_what_may_be_a_chat_is_parsed_on_a_thread(predictor):
    for body in (b'{"messages": []}', b'{"\\u006dessages": []}', b'{"m\\u0065ssages": []}'):
        assert predictor.parses_long(body)
        assert not loaded().parses_long(body)
    assert not predictor.parses_long(b'{"inputs": "The messages of a queue."}')


def test_a_template_that_cannot_be_used_is_told_by_the_log(tmp_path):
    with captured_logs() as logs:
        predictor = loaded(model_with_template(tmp_path / "model", "{% for %}"))
    [line] = logs.events("chat_template_unusable")
    assert "the chat template is not valid: line 1: " in line["message"]
    with pytest.raises(InvalidRequestError, match="cannot be used, and the container's log says"):
        predictor.parse(json.dumps({"messages": [USER]}).encode())
    assert answer(predictor, {"inputs": "Amazon S3 bucket"}) == [{"generated_text": WHOLE}]
