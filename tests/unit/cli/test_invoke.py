"""`slipway invoke` before anything is sent: the request and its JSON."""

import json

import pytest
from botocore.exceptions import ClientError

import slipway.access
import slipway.operations.invoke.asynchronous
import slipway.operations.invoke.realtime
from slipway.cli.invoke import invoke
from slipway.errors import UserError
from slipway.operations.invoke.asynchronous import AsyncAnswer
from slipway.operations.invoke.realtime import Answer, StreamAnswer, _parameters, refused
from slipway.planning.families.triton import kserve
from tests.support.projects import config_text, refusal, write_project
from tests.support.shared_endpoints import models


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(slipway.access, "open_access", lambda *_: None)


REMEDY = (
    """Give one: `slipway invoke tiny '{"inputs": "The"}'`, or """
    "`slipway invoke tiny --file request.json`."
)


@pytest.mark.parametrize(
    ("body", "file", "message", "remedy"),
    [
        (None, None, "no request is given", REMEDY),
        ("{}", "request.json", "two requests are given", REMEDY),
        (None, "missing.json", "missing.json cannot be read: No such file or directory",
         "Name a file with the request."),
    ],
)  # fmt: skip
def test_a_request_comes_from_one_place(body, file, message, remedy):
    (problem,) = refusal(invoke, "tiny", body, file).problems
    assert (problem.message, problem.remedy) == (message, remedy)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{"inputs": "The}', "request.json:1:12: not JSON: Unterminated string starting at"),
        (b'{\n  "inputs": 1,\n}', "request.json:2:14: not JSON: Illegal trailing comma"),
        (b"", "request.json:1:1: not JSON: Expecting value"),
        (b'{"inputs": "\xff"}', "request.json: not JSON: byte 12 is not utf-8"),
    ],
)
def test_what_is_not_json_is_located(content, place, tmp_path):
    (tmp_path / "request.json").write_bytes(content)
    report = str(refusal(invoke, "tiny", None, "request.json"))
    # Python 3.13 says more exactly what a comma before a brace is.
    expected = place.partition("Illegal")[0]
    assert expected in report or "request.json:3:1: not JSON: Expecting property name" in report
    assert "Send valid JSON, or name another `--content-type`." in report


def test_deep_json_is_the_containers_matter_and_other_content_is_not_looked_into():
    deep = "[" * 100_000 + "]" * 100_000
    for body, content_type in ((deep, kserve.JSON), ("not json", "text/plain")):
        error = refusal(invoke, "tiny", body, None, content_type=content_type)
        assert "no Slipway project here" in str(error)


TRITON = """\
name: tiny
description: A speller
model: {family: t5, parameters: 60506624}
serving: {container: triton, version: "25.04", max_input_tokens: 32, max_new_tokens: 32}
artifacts: {sample: {path: samples/tiny}}
endpoint: {instances: [ml.g4dn.xlarge]}
alarms: {model_latency_p99_milliseconds: 600}
"""


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """A project with some models, whose requests are noted and answered."""
    noted = []

    def start(models, **answer):
        write_project(tmp_path, models)

        def send(request, _access, wait):
            noted.append((request, wait))
            if wait is not None:
                wait.show(21.4)
            return Answer(b"{}", "application/json", "AllTraffic", 0.01, "1", **answer)

        monkeypatch.setattr(slipway.operations.invoke.realtime, "invoke", send)
        return noted

    return start


class Endpoint:
    """Answers the texts that it gets, twice each, in the form of the request."""

    def __init__(self, answer=None):
        self.requests = []
        self._answer = answer

    def send(self, request, _access, _wait):
        self.requests.append(request)
        texts = kserve.decode("inputs", kserve.INPUT, request.body, request.content_type)
        body, content_type = self._answer or kserve.encode(
            "outputs",
            kserve.OUTPUT,
            [text * 2 for text in texts],
            binary=request.content_type != kserve.JSON,
        )
        return Answer(body, content_type, "AllTraffic", 0.01, "1")


@pytest.fixture
def connect(tmp_path, monkeypatch):
    """Connects a project with a model of Triton to an endpoint."""
    write_project(tmp_path, {"tiny": TRITON, "other": config_text("other")})

    def connected(answer=None):
        endpoint = Endpoint(answer)
        monkeypatch.setattr(slipway.operations.invoke.realtime, "invoke", endpoint.send)
        return endpoint

    return connected


def test_the_parts_of_a_stream_are_shown_once_and_timed(connect, monkeypatch, capsysbinary):
    def send(_request, _access, show, _wait):
        for part in (b"one ", b"two\n"):
            show(part)
        answer = Answer(b"one two\n", "text/plain", "AllTraffic", 0.02, "1")
        return StreamAnswer(answer, 2, 0.005)

    connect()
    monkeypatch.setattr(slipway.operations.invoke.realtime, "invoke_stream", send)
    invoke("tiny", "{}", stream=True)
    shown, timed = capsysbinary.readouterr()
    assert shown == b"one two\n"
    assert timed == b"AllTraffic answered in 20.0 ms, the first part after 5.0 (request 1)\n"
    invoke("tiny", "{}", stream=True, as_json=True)
    document = json.loads(capsysbinary.readouterr().out)
    assert (document["answer"], document["first_part_milliseconds"]) == ("one two\n", 5.0)


@pytest.mark.parametrize("content_type", [kserve.JSON, kserve.BINARY])
def test_texts_are_sent_and_shown_as_texts(content_type, connect, capsysbinary):
    endpoint = connect()
    invoke("tiny", text=["ab", "é"], content_type=content_type)
    (request,) = endpoint.requests
    assert request.endpoint_name == "tiny-local"
    assert request.content_type.startswith(content_type)
    shown, timed = capsysbinary.readouterr()
    assert shown.decode() == "abab\néé\n"
    assert timed == b"AllTraffic answered in 10.0 ms (request 1)\n"
    invoke("tiny", text=["ab"], as_json=True)
    assert json.loads(capsysbinary.readouterr().out)["answer"] == ["abab"]


def test_an_answer_without_texts_says_so(connect):
    connect((b'{"outputs": []}', kserve.JSON))
    with pytest.raises(UserError, match="the answer has no texts: there is no tensor ANSWER in"):
        invoke("tiny", text=["ab"])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tiny", {"body": "{}"}, "two requests are given"),
        ("tiny", {"stream": True},
         "`--stream` shows parts of an answer, and `--text` needs the whole of it"),
        ("tiny", {"content_type": "text/plain"}, "`--text` is not sent as text/plain"),
        ("tiny", {"text": ["\udcff"]}, "a text is not UTF-8"),
        ("other", {}, "`--text` does not fit other: requests of the container `tensorrt` have a "
         "form of their own"),
    ],
)  # fmt: skip
def test_texts_that_cannot_be_sent(name, options, message, connect):
    connect()
    assert refusal(invoke, name, **{"text": ["ab"], **options}).problems[0].message == message


def test_what_cannot_be_waited_for_and_a_throttled_request_are_told(sent):
    sent({"tiny": config_text("tiny")})
    [problem] = refusal(invoke, "tiny", "{}", wait=600).problems
    assert problem.message == "`--wait` has no effect: tiny answers at once"
    assert problem.remedy == "Leave out `--wait`."
    error = ClientError({"Error": {"Code": "ThrottlingException", "Message": None}}, "Invoke")
    (problem,) = refused("tiny-local", error).problems
    assert problem.message == "ThrottlingException: the endpoint takes no further request now"
    assert "`max_concurrency`" in problem.remedy


def test_a_request_names_the_component_of_an_endpoint_that_sleeps(sent, capsys):
    mode = "  mode: scale_to_zero\n  scale_to_zero:\n    max_copies: 2\n"
    text = config_text("tiny").replace("endpoint:\n", f"endpoint:\n{mode}")
    requests = sent({"tiny": text}, waited_seconds=30.0)
    invoke("tiny", "{}")
    assert [(request.component, wait) for request, wait in requests] == [("tiny-local", None)]
    capsys.readouterr()
    invoke("tiny", "{}", wait=600, as_json=True)
    printed = capsys.readouterr()
    assert printed.err == "tiny-local wakes: waited 21 of 600 s\n"
    assert json.loads(printed.out)["waited_seconds"] == 30
    assert requests[1][1].limit_seconds == 600


def test_a_request_has_the_members_of_its_options(sent, capsys):
    requests = sent({"tiny": config_text("tiny")}, session_id="a; Expires=1")
    members = {
        "session_id": "NEW_SESSION", "prefix_aware_id": "chat", "inference_id": "7",
        "custom_attributes": "trace=1",
    }  # fmt: skip
    invoke("tiny", "{}", **members)
    assert "; session a; Expires=1\n" in capsys.readouterr().err
    assert (
        _parameters(requests[0][0]).items()
        >= {
            "SessionId": "NEW_SESSION",
            "PrefixAwareId": "chat",
            "InferenceId": "7",
            "CustomAttributes": "trace=1",
        }.items()
    )
    with pytest.raises(UserError, match="opens no session with a stream"):
        invoke("tiny", "{}", **members, stream=True)


def test_a_request_of_a_queue_has_the_members_of_its_options(sent, monkeypatch, capsys):
    queue = "  mode: async\n  async_inference: {input: 's3://in/', output: 's3://out/'}\n"
    text = config_text("tiny").replace("endpoint:\n", f"endpoint:\n{queue}")
    sent({"tiny": text, "fast": config_text("fast")})
    queued = []

    def send(request, _queue, _access, *, is_inline, **_more):
        queued.append((request.members, is_inline))
        return AsyncAnswer(b"{}", "application/json", "7", None, "s3://out/a.json", 1.0)

    monkeypatch.setattr(slipway.operations.invoke.asynchronous, "invoke_async", send)
    options = {
        "inference_id": "7", "custom_attributes": "trace=1", "filename": "a.json",
        "output_path_extension": "of/me", "request_ttl_seconds": 60,
        "invocation_timeout_seconds": 3600,
    }  # fmt: skip
    invoke("tiny", "{}", **options, inline=True, as_json=True)
    assert json.loads(capsys.readouterr().out)["input_location"] is None
    members = {
        "InferenceId": "7", "CustomAttributes": "trace=1", "Filename": "a.json",
        "S3OutputPathExtension": "of/me", "RequestTTLSeconds": 60,
        "InvocationTimeoutSeconds": 3600,
    }  # fmt: skip
    assert queued == [(members, True)]
    for name, option, mode in (
        ("tiny", {"session_id": "a"}, "asynchronous"),
        ("tiny", {"stream": True}, "asynchronous"),
        ("fast", {"filename": "a"}, "not asynchronous"),
        ("fast", {"inline": True}, "not asynchronous"),
    ):
        given = f"--{next(iter(option)).replace('_', '-')}"
        with pytest.raises(UserError, match=f"`{given}` has no effect: the endpoint is {mode}"):
            invoke(name, "{}", **option)
    assert [
        each.message
        for each in refusal(
            invoke, "tiny", "{}", filename="", inference_id="", session_id="a"
        ).problems
    ] == [
        "`--session-id` has no effect: the endpoint is asynchronous",
        "`--inference-id` is empty",
        "`--filename` is empty",
    ]


def test_a_request_to_a_guest_names_the_endpoint_of_its_host(sent):
    requests = sent(models())
    invoke("titles", "{}")
    invoke("search", "{}")
    assert [(request.endpoint_name, request.component) for request, _ in requests] == [
        ("search-local", "titles-local"), ("search-local", "search-local"),
    ]  # fmt: skip
