"""Texts of `slipway invoke` and the real Triton's /invocations understand each other."""

import http.client
import json
import os
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slipway.embedded_aws.hosting.families.triton import triton_server
from slipway.planning.families.triton.kserve import BINARY, JSON, KServeTexts
from tests.support.page_runs import free_port
from tests.support.waiting import eventually
from tests.unit.planning.triton_repositories import echo

pytestmark = pytest.mark.triton

TEXTS = st.text(max_size=50)


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Yields a function that sends a request to a model which answers its texts."""
    repository, port = tmp_path_factory.mktemp("model"), free_port()
    for path, content in echo().items():
        file = repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    settings = {"SAGEMAKER_BIND_TO_PORT": str(port), "SM_MODEL_DIR": str(repository)}
    server = subprocess.Popen(
        triton_server.COMMAND,
        env={**os.environ, **settings, "SAGEMAKER_TRITON_LOG_VERBOSE": "false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def send(method, path, body=None, content_type=JSON):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": content_type})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers["Content-Type"]
        finally:
            connection.close()

    def is_ready():
        assert server.poll() is None, "the server ended"
        try:
            return send("GET", "/ping")[0] == 200
        except OSError:
            return False

    try:
        eventually(is_ready)
        yield lambda body, content_type: send("POST", "/invocations", body, content_type)
    finally:
        server.kill()
        server.wait()


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=8), content_type=st.sampled_from((JSON, BINARY)))
@example(texts=[""], content_type=JSON)
@example(texts=["a\0b"], content_type=JSON)
@example(texts=["", "é\n\U0001f600", ""], content_type=BINARY)
def test_texts_come_back_from_the_server(ask, texts, content_type):
    protocol = KServeTexts()
    request = protocol.request(texts, content_type)
    status, body, answered = ask(request.body, request.content_type)
    assert status == 200, body
    assert answered.startswith(content_type)
    assert protocol.answers(body, answered) == texts


def test_an_error_is_one_text(ask):
    request = KServeTexts().request(["a"] * 9, JSON)
    status, body, _ = ask(request.body, request.content_type)
    assert status >= 400
    error = json.loads(body)
    assert list(error) == ["error"]
    assert "batch-size must be <= 8" in error["error"]
