"""Calls, batches and errors, with stand-ins for the server and for DeepSpeed.

What is shared by the handlers is tried with one of them; `version` is whose batches arrive.
"""

import json
import logging

import pytest

VERSIONS = ("0.21", "0.24", "0.25")
MODEL_FAILURE = {
    "error": {"code": "model_failure", "message": "The model failed to compute an answer."}
}


def texts(*generated):
    return [{"generated_text": text} for text in generated]


def request(inputs, **parameters):
    return {"inputs": inputs, "parameters": parameters}


def test_the_empty_stand_in_call_loads_the_model_and_is_answered_with_none(
    deepspeed_server, journal
):
    server = deepspeed_server()
    assert server.start(model_id="s3-copy") is None
    loaded = list(journal.loaded)
    assert loaded
    assert server.post(request("abc")) == (200, texts("defghijklmnopqrstuvw"))
    assert journal.loaded == loaded


def test_a_later_empty_stand_in_call_is_a_body_that_was_not_handed_over(server):
    output = server.start()
    assert output.code == 400
    assert json.loads(bytes(output.content.value_at(0))) == {
        "error": {"code": "invalid_request", "message": "Send a body of application/json."}
    }
    assert server.post(request("abc", max_new_tokens=1)) == (200, texts("d"))


def test_a_stand_in_server_posts_one_request_with_several_prompts(server):
    assert server.post(request(["abc", "x"], max_new_tokens=2)) == (200, texts("de", "yz"))
    assert server.post(request("abc", max_new_tokens=2, return_full_text=True)) == (
        200,
        texts("abcde"),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_stand_in_batches_are_answered_each_by_its_own(deepspeed_server, journal, version):
    server = deepspeed_server(version=version).started()
    answers = server.post_together(
        request("a", max_new_tokens=1),
        request("c", max_new_tokens=2),
        request(["e", "g"], max_new_tokens=1, return_full_text=True),
        request("i", max_new_tokens=2, repetition_penalty=1.5),
    )
    assert answers == [
        (200, texts("b")),
        (200, texts("de")),
        (200, texts("ef", "gh")),
        (200, texts("jk")),
    ]
    # What can be computed together is: whether the prompt is returned makes no difference.
    assert [call["prompts"] for call in journal.calls] == [["a", "e", "g"], ["c"], ["i"]]
    assert [call["repetition_penalty"] for call in journal.calls] == [1.0, 1.0, 1.5]


@pytest.mark.parametrize(
    ("version", "prompts"), [("0.24", "a"), ("0.25", "a"), ("0.25", "abcdefghijklm")]
)
def test_a_stand_in_batch_may_have_one_request_or_more_than_ten(deepspeed_server, version, prompts):
    server = deepspeed_server(version=version).started()
    answers = server.post_together(*(request(text, max_new_tokens=1) for text in prompts))
    assert answers == [(200, texts(chr(ord(text) + 1))) for text in prompts]
    assert server.post_together(request(""))[0][0] == 400


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bad_request_fails_no_other_of_a_stand_in_batch(deepspeed_server, version):
    server = deepspeed_server(version=version).started()
    answers = server.post_together(request(""), request("a", max_new_tokens=1), b"?")
    # The server has one status for all.
    assert [status for status, _ in answers] == [200, 200, 200]
    assert answers[1][1] == texts("b")
    messages = "inputs is an empty string: it must hold some text.", "The body is not valid JSON"
    for (_, document), message in zip((answers[0], answers[2]), messages, strict=True):
        assert document["error"]["code"] == "invalid_request"
        assert document["error"]["message"].startswith(message)


def test_where_all_of_a_stand_in_batch_fail_alike_the_status_says_so(server):
    answers = server.post_together(request(""), request(""))
    assert [status for status, _ in answers] == [400, 400]
    apart = server.post_together(request(""), request([]))
    assert [status for status, _ in apart] == [200, 200]
    assert apart[0][1] != apart[1][1]


def test_a_failure_of_the_model_is_logged_and_not_told(server, caplog):
    with caplog.at_level(logging.ERROR):
        answer = server.post(request("poison!"))
    assert answer == (500, MODEL_FAILURE)
    assert "secret.cu" in caplog.text
    assert "Traceback" in caplog.text
    assert server.post(request("a", max_new_tokens=1)) == (200, texts("b"))


def test_a_failure_of_the_model_fails_only_what_was_computed_with_it(server):
    answers = server.post_together(
        request("!", max_new_tokens=1),
        request("a", max_new_tokens=2),
        request("b", max_new_tokens=1),
    )
    assert answers == [(200, MODEL_FAILURE), (200, texts("bc")), (200, MODEL_FAILURE)]


def test_a_failure_of_the_handler_itself_is_logged_and_not_told(server, caplog, monkeypatch):

    def unreadable(_):
        raise KeyError("/opt/ml/secret")

    with monkeypatch.context() as context, caplog.at_level(logging.ERROR):
        context.setattr("tests.containers.lmi.server.StandInInput.get_batches", unreadable)
        answer = server.post(request("a"))
    message = "The server failed to answer; see its log."
    assert answer == (500, {"error": {"code": "internal_error", "message": message}})
    assert "/opt/ml/secret" in caplog.text


def test_long_lists_are_computed_in_parts(deepspeed_server, journal):
    server = deepspeed_server().started(max_inputs="2")
    answers = server.post_together(*(request([t, t], max_new_tokens=1) for t in "ab"))
    assert answers == [(200, texts("b", "b")), (200, texts("c", "c"))]
    assert [call["prompts"] for call in journal.calls] == [["a", "a"], ["b", "b"]]
    assert server.refusal(request(["a", "b", "c"])) == "The request holds 3 inputs; the limit is 2."


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (request("a" * 64), "Input 0 has 64 tokens; the limit is 63."),
        (request(["a", "\t\t"]), "Input 1 holds no token that the model knows."),
        (
            request(["a", "b" * 60], max_new_tokens=5),
            "Input 1 has 60 tokens and max_new_tokens is 5: together they exceed the model's 64 "
            "positions; at most 4 new tokens fit.",
        ),
        (request("a", max_new_tokens=257), "max_new_tokens=257 is not within 1 to 256."),
        (
            b'{"inputs": "a"',
            "The body is not valid JSON: Expecting ',' delimiter at line 1 column 15.",
        ),
    ],
)
def test_a_bad_request_is_400_with_the_reason(server, body, message):
    assert server.refusal(body) == message


def test_the_default_length_is_cut_to_what_fits(deepspeed_server):
    server = deepspeed_server().started(default_new_tokens="3")
    assert server.post(request("a")) == (200, texts("bcd"))
    assert server.post(request("a" * 63)) == (200, texts("b"))


def test_a_seed_gives_the_same_text_whoever_else_asks(server):
    body = request(["ab", "ab"], do_sample=True, seed=2**63 - 1, max_new_tokens=8)
    alone = server.post(body)
    assert alone[0] == 200
    assert alone[1][0] != alone[1][1]
    together = server.post_together(request("ab", do_sample=True, max_new_tokens=8), body, body)
    assert together[1:] == [alone, alone]
    single = server.post(request("ab", do_sample=True, seed=2**63 - 1, max_new_tokens=8))
    assert single[1] == alone[1][:1]


def test_without_a_seed_each_draw_is_another_and_the_same_in_every_process(server, journal):
    body = request("ab", do_sample=True, max_new_tokens=8)
    first = [server.post(body), server.post(body)]
    assert first[0] != first[1]
    server.post_together(body, body)
    # Drawn together, with one seed.
    assert len(journal.seeds) == 3
    assert journal.calls[-1]["prompts"] == ["ab", "ab"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"rolling_batch": "auto", "dtype": "fp8", "max_inputs": "0"},
            "serving.properties: option.rolling_batch=auto does not go with this model.py, which "
            "takes disable; option.max_inputs=0 is not a whole number within 1 to 1000000; "
            "option.dtype=fp8 does not go with this model.py, which takes fp32 or fp16 or bf16 or "
            "int8",
        ),
        (
            {"max_new_tokens": "8", "default_new_tokens": "9"},
            "serving.properties: option.default_new_tokens=9 exceeds option.max_new_tokens=8",
        ),
        (
            {"task": "summarization"},
            "serving.properties: option.task=summarization does not go with this model.py, which "
            "takes text-generation or fill-mask or text-classification or token-classification",
        ),
    ],
)
def test_options_that_cannot_be_followed_stop_the_server(
    deepspeed_server, journal, options, message
):
    server = deepspeed_server()
    with pytest.raises(Exception, match=r"^serving\.properties: ") as caught:
        server.start(**options)
    assert type(caught.value).__name__ == "InvalidOptionsError"
    assert str(caught.value) == message
    assert not journal.loaded
