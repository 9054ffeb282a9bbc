"""The real Triton loads the repositories that Slipway accepts, and refuses those it refuses."""

import http.client
import json
import os
import shutil
import subprocess

import pytest

from slipway.embedded_aws.hosting.families.triton import triton_server
from slipway.publishing.families.triton.graph import Serving, write_repository
from tests.support.page_runs import free_port
from tests.support.pages import ROOT
from tests.support.waiting import eventually
from tests.unit.planning.triton_repositories import CASES, check

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

# The server of the tests has the Python back end and ensembles.
JUDGED = {name: case for name, case in CASES.items() if not case.needs}


class Server:
    """A server that loads the models of one directory when it is asked."""

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
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(method, f"/v2/{path}", json.dumps({"parameters": parameters or {}}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


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
    for path, content in case.files.items():
        file = server.repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
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
