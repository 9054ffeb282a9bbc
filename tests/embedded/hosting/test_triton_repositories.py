"""The real Triton loads and refuses the repositories that Slipway does, and reads its texts."""

import functools
import http.client
import json
import os
import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slipway.embedded_aws.hosting.families.triton import triton_server
from slipway.planning.families.triton.kserve import BINARY, JSON, KServeTexts
from slipway.publishing.families.triton.graph import Serving, write_repository
from tests.support.page_runs import free_port
from tests.support.pages import ROOT
from tests.support.waiting import eventually
from tests.unit.planning.triton_repositories import CASES, check, echo

pytestmark = pytest.mark.triton

GRAPH = ROOT / "samples/bert-qa/model/model.onnx"
LOGITS = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse(list(self.logits(request))) for request in requests]

    def logits(self, request):
        tokens = pb_utils.get_input_tensor_by_name(request, "input_ids").as_numpy()
        for name in ("start_logits", "end_logits"):
            yield pb_utils.Tensor(name, tokens.astype("float32"))
"""

TEXTS = st.lists(st.text(max_size=50), min_size=1, max_size=8)
# The server of the tests has the Python back end and ensembles.
JUDGED = {name: case for name, case in CASES.items() if not case.needs}


class Server:
    def __init__(self, repository):
        self.repository = repository
        self._log = repository.with_name("tritonserver.log")
        self._start()

    def _start(self):
        self._port = free_port()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(triton_server.find_server(os.environ)),
                    f"--model-repository={self.repository}",
                    "--model-control-mode=explicit",
                    "--backend-config=python,shm-default-byte-size=1048576",
                    "--allow-grpc=false",
                    "--allow-metrics=false",
                    "--http-address=127.0.0.1",
                    f"--http-port={self._port}",
                ],
                env=triton_server.server_environment(os.environ, "none"),
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def restart_if_it_ended(self):
        """Starts the server anew where its process has ended, and returns whether it had."""
        status = self._process.poll()
        if status is not None:
            print(f"tritonserver ended with {status}:\n{self._log.read_text('utf-8')[-4000:]}")
            self._start()
            eventually(self.is_ready)
        return status is not None

    def is_ready(self):
        assert self._process.poll() is None, self._log.read_text("utf-8")[-4000:]
        try:
            return self._ask("GET", "health/ready")[0] == 200
        except OSError:
            return False

    def load(self, model):
        """Returns the server's reason not to load a model; "" if it does."""
        status, answer = self._ask("POST", f"repository/models/{model}/load")
        return "" if status == 200 else json.loads(answer)["error"]

    def unload(self, model):
        self._ask("POST", f"repository/models/{model}/unload", {"unload_dependents": True})

    def stop(self):
        self._process.kill()
        self._process.wait()

    def _ask(self, method, path, parameters=None):
        body = json.dumps({"parameters": parameters or {}})
        return send(self._port, method, f"/v2/{path}", body)[:2]


def send(port, method, path, body=None, content_type=JSON):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, {"Content-Type": content_type})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers["Content-Type"]
    finally:
        connection.close()


def write_files(repository, files):
    for path, content in files.items():
        file = repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("repository"))
    try:
        eventually(started.is_ready)
        yield started
    finally:
        started.stop()


def _takes_long(name):
    """Returns whether the server starts a process for each of several models of a case."""
    case = JUDGED[name]
    return case.server_takes or case.default_model is not None or not check(case).problems


def reasons_against(models, server):
    """Returns the server's reasons not to load models.

    Rarely the server itself ends while it starts a model in Python. The model's process has the
    connection too, so that the answer never comes. A repository that ends the server ends it twice.
    """
    try:
        return [reason for model in models if (reason := server.load(model))]
    except OSError:
        if not server.restart_if_it_ended():
            raise
        return [reason for model in models if (reason := server.load(model))]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.size("deep")] if _takes_long(name) else [])
        for name in JUDGED
    ],
)
def test_the_server_agrees(name, server):
    case = JUDGED[name]
    write_files(server.repository, case.files)
    models = sorted({path.partition("/")[0] for path in case.files if "/" in path})
    try:
        reasons = reasons_against(models, server)
    finally:
        for model in models:
            server.unload(model)
            shutil.rmtree(server.repository / model)
    is_refused = bool(check(case).problems) and not case.server_takes
    assert bool(reasons) == is_refused, reasons


def test_the_server_takes_a_written_repository(server):
    """The server has no back end for graphs. A model in Python stands for one, and is warmed up."""
    write_repository(server.repository, "graph", GRAPH, Serving(8, 100, 2, warmup_length=16))
    config = server.repository / "graph/config.pbtxt"
    try:
        assert "unable to find backend library for backend 'onnxruntime'" in server.load("graph")
        text = config.read_text("utf-8")
        config.write_text(text.replace('"onnxruntime"', '"python"'), "utf-8")
        (server.repository / "graph/1/model.py").write_text(LOGITS, "utf-8")
        assert server.load("graph") == ""
        server.unload("graph")
        config.write_text(config.read_text("utf-8").replace("dims: [ 16 ]", "dims: [ 16, 2 ]"))
        assert "unexpected shape for input" in server.load("graph")
    finally:
        server.unload("graph")
        shutil.rmtree(server.repository / "graph")


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Yields a function that sends a request to a model which answers its texts."""
    repository, port = tmp_path_factory.mktemp("model"), free_port()
    write_files(repository, echo())
    settings = {"SAGEMAKER_BIND_TO_PORT": str(port), "SM_MODEL_DIR": str(repository)}
    server = subprocess.Popen(
        triton_server.COMMAND,
        env={**os.environ, **settings, "SAGEMAKER_TRITON_LOG_VERBOSE": "false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def is_ready():
        assert server.poll() is None, "the server ended"
        try:
            return send(port, "GET", "/ping")[0] == 200
        except OSError:
            return False

    try:
        eventually(is_ready)
        yield functools.partial(send, port, "POST", "/invocations")
    finally:
        server.kill()
        server.wait()


@settings(max_examples=50, deadline=None)
@given(
    texts=st.lists(st.text(max_size=50), min_size=1, max_size=8),
    content_type=st.sampled_from((JSON, BINARY)),
)
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
