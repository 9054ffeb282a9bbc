"""The container's program with the real Triton: bad requests, lost processes, overload, SIGTERM."""

import contextlib
import gzip
import json
import os
import re
import signal
import struct
import subprocess
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.embedded_aws.hosting.families import programs
from tests.support.groups import need
from tests.support.page_runs import free_port
from tests.support.processes import command_line, kill_tree, session
from tests.support.starts import count_start
from tests.support.waiting import eventually

need("triton")

pytestmark = [pytest.mark.triton, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
MODEL_DIR = ROOT / "samples/t5-spelling/model"
MAX_INPUT_TOKENS = 32
JSON = "application/json"
BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="
WORD, CORRECTED = "instnace", "instance"


class Server:
    def __init__(self, home, **variables):
        count_start("server")
        self.port = free_port()
        home.mkdir(exist_ok=True)
        program = programs()["slipway/triton"]
        self.log = home / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                program.command,
                cwd=ROOT,
                env={
                    "HOME": str(home),
                    "PATH": os.environ["PATH"],
                    "PYTHONPATH": str(ROOT),
                    "SAGEMAKER_BIND_TO_PORT": str(self.port),
                    "SLIPWAY_INSTANCE_COUNT": "2",
                    "SLIPWAY_MAX_INPUT_TOKENS": str(MAX_INPUT_TOKENS),
                    "SLIPWAY_MAX_NEW_TOKENS": "32",
                    "SM_MODEL_DIR": str(MODEL_DIR),
                    **program.environment,
                    **variables,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            timeout=60,
            trust_env=False,
            limits=httpx.Limits(max_connections=None),
        )
        eventually(self.is_ready, seconds=60)
        # Argument of a copy's process: its shared memory, which outlives a server that is killed.
        copies = map(command_line, self.child("triton_python_backend_stub"))
        self.shared_memory = [Path("/dev/shm", words[2]) for words in copies]  # noqa: S108

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.client.get("/ping").status_code == 200
        except httpx.HTTPError:
            return False

    def post(self, content, content_type=JSON):
        return self.client.post(
            "/invocations", content=content, headers={"content-type": content_type}
        )

    def status(self, content):
        try:
            return self.post(content).status_code
        except httpx.HTTPError as error:
            return type(error).__name__

    def answers(self):
        answer = self.post(request(WORD))
        return answer.status_code == 200 and texts(answer) == [CORRECTED]

    def events(self, name):
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [event for line in lines if (event := json.loads(line))["event"] == name]

    def child(self, name):
        """Returns the processes of a name in the program's session."""
        return [pid for pid in session(self.process.pid) if name in " ".join(command_line(pid))]

    def close(self):
        self.client.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        finally:
            # A killed server leaves its copies. A container's end takes them with it.
            kill_tree(self.process)
            for region in self.shared_memory:
                region.unlink(missing_ok=True)


def request(*words, **changes):
    tensor = {"name": "TEXT", "shape": [len(words), 1], "datatype": "BYTES", "data": words}
    return json.dumps({"inputs": [tensor | changes]}).encode()


def binary(*words):
    data = b"".join(struct.pack("<I", len(word)) + word for word in words)
    tensor = {
        "name": "TEXT",
        "shape": [len(words), 1],
        "datatype": "BYTES",
        "parameters": {"binary_data_size": len(data)},
    }
    outputs = [{"name": "ANSWER", "parameters": {"binary_data": False}}]
    head = json.dumps({"inputs": [tensor], "outputs": outputs}).encode()
    return head + data, f"{BINARY}{len(head)}"


def texts(answer):
    (output,) = answer.json()["outputs"]
    return output["data"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("triton"))
    yield started
    assert started.answers()
    assert started.process.poll() is None
    started.close()


@pytest.fixture
def another(tmp_path):
    started = []

    def start(**variables):
        started.append(Server(tmp_path / "home", **variables))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_both_forms_of_a_request(server):
    words = [WORD, "lamdba fucntion", CORRECTED]
    expected = [CORRECTED, "lambda function", CORRECTED]
    assert texts(server.post(request(*words))) == expected
    assert texts(server.post(*binary(*(word.encode() for word in words)))) == expected
    # An empty text has an answer.
    assert len(texts(server.post(request("")))) == 1


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b'{"inputs": []}', 400, "expected 1 inputs but got 0"),
        (request(WORD, name="TEXTS"), 400, "unexpected inference input"),
        (request(WORD, datatype="FP32", data=[1.5]), 400, "data-type is 'FP32'"),
        (request(WORD, shape=[1]), 400, "unexpected shape"),
        (request(WORD, "b", shape=[1, 2]), 400, "unexpected shape"),
        (request(*["a"] * 9), 400, "batch-size must be <= 8"),
        (request("a" * 40), 400, "Input 0 has 41 tokens; the limit is 32."),
        # Brackets in a text are text, and the model answers.
        (request("[{" * 100), 400, "tokens; the limit is 32"),
        (request("a" * 6_000_000), 400, "has 6000000 bytes; the limit is 2048."),
        # Triton's own parser answers 500.
        (b"{", 500, "failed to parse the request JSON"),
        (b"null", 500, "Unable to parse 'inputs'"),
        (b"[" * 64, 500, "failed to parse the request JSON"),
        # Triton would end with SIGSEGV.
        (b"[" * 200_000, 400, "nested more than 64 levels"),
        (b'{"a":' * 200_000, 400, "nested more than 64 levels"),
        (b'{"\\\\":"]\\"]","b":' * 200_000, 400, "nested more than 64 levels"),
        (b'{"outputs":[' + b"{}," * 2000, 400, "more than 1024 objects"),
        (b" " * 6_291_457, 413, "exceeds the limit of 6291456 bytes"),
    ],
    ids=lambda value: value[:40] if isinstance(value, bytes) else None,
)
def test_a_bad_request_is_refused(server, content, status, message):
    answer = server.post(content)
    assert (answer.status_code, message in answer.text) == (status, True), answer.text
    assert server.answers()


@pytest.mark.parametrize("wrap", ["binary", "gzip", "deflate", "chunked"])
def test_nested_json_does_not_pass_in_another_form(server, wrap):
    bomb = b'{"a":' * 200_000
    status, content, headers = 400, bomb, {"content-type": JSON}
    if wrap == "binary":
        content, headers = bomb + b"text", {"content-type": f"{BINARY}{len(bomb)}"}
    elif wrap != "chunked":
        status, content = 415, {"gzip": gzip.compress, "deflate": zlib.compress}[wrap](bomb)
        headers["content-encoding"] = wrap
    sent = iter([content]) if wrap == "chunked" else content
    answer = server.client.post("/invocations", content=sent, headers=headers)
    assert answer.status_code == status, answer.text
    assert server.answers()


def test_triton_itself_serves_the_guard_alone(server):
    """Other programs of the machine can connect to Triton's port, and are refused there."""
    command = server.events("server_starting")[0]["command"]
    (port,) = [word.partition("=")[2] for word in command if word.startswith("--http-port=")]
    for path in ("/v2", "/v2/models/model/config", "/v2/systemsharedmemory/status", "/v2/logging"):
        answer = httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False)
        assert (answer.status_code, "slipway" in answer.text) == (403, True), answer.text
    for path in ("/models", "/v2/models/model/infer", "/invocations/"):
        assert server.client.post(path, content=request(WORD)).status_code == 404


@pytest.mark.parametrize("size", ["-1", "0", "99999999999", "99999999999999999999", "x", ""])
def test_a_header_of_another_size(server, size):
    content, _ = binary(WORD.encode())
    assert server.post(content, f"{BINARY}{size}").status_code in (400, 500)
    assert server.answers()


def test_a_bad_row_fails_alone(server):
    bodies = [binary(b"\xff" if row % 4 == 3 else WORD.encode()) for row in range(16)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda body: server.post(*body), bodies))
    for row, answer in enumerate(answers):
        if row % 4 == 3:
            assert answer.status_code == 400
            assert "TEXT is not UTF-8: byte 0 of a text" in answer.text
        else:
            assert texts(answer) == [CORRECTED]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
TENSORS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["TEXT", "ANSWER"]) | VALUES,
        "shape": st.lists(st.integers(-1, 9), max_size=3) | VALUES,
        "datatype": st.sampled_from(["BYTES", "FP32", "INT64"]) | VALUES,
        "data": st.lists(st.text(max_size=40), max_size=9) | VALUES,
        "parameters": st.fixed_dictionaries({"binary_data_size": st.integers(-1, 99)}) | VALUES,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {}, optional={"inputs": st.lists(TENSORS, max_size=2), "outputs": VALUES, "id": VALUES}
)
HEADER_SIZES = st.integers(-5, 200).map(str) | st.text(
    st.characters(codec="ascii", categories=["L", "N"]), max_size=5
)
BODIES = st.tuples(
    DOCUMENTS.map(lambda document: json.dumps(document).encode()), st.binary(max_size=40)
).map(b"".join)


@pytest.mark.parametrize("requests", [300, pytest.param(10_000, marks=pytest.mark.size("deep"))])
def test_any_body_gets_an_answer(server, requests):
    @settings(
        max_examples=requests,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(content=BODIES, size=st.none() | HEADER_SIZES)
    def send(content, size):
        answer = server.post(content, JSON if size is None else f"{BINARY}{size}")
        assert answer.status_code in (200, 400, 500), answer.text
        if answer.status_code != 200:
            assert answer.json()["error"]

    send()
    assert server.answers()
    assert server.events("model_process_lost") == []


def test_overload_is_refused_at_once(another):
    server = another(
        SLIPWAY_INSTANCE_COUNT="1",
        SLIPWAY_MAX_BATCH_SIZE="2",
        SLIPWAY_MAX_QUEUE_LENGTH="2",
    )
    found = []

    def is_refused():
        # How many requests meet depends on the machine.
        with ThreadPoolExecutor(48) as pool:
            found.extend(pool.map(lambda _: server.post(request(WORD)), range(400)))
        return any(answer.status_code == 503 for answer in found)

    eventually(is_refused)
    assert {answer.status_code for answer in found} == {200, 503}
    refused = [answer for answer in found if answer.status_code == 503]
    assert {answer.json()["error"] for answer in refused} == {
        "The queue is full: at most 2 requests may wait."
    }
    assert server.answers()


def test_no_request_waits_while_a_copy_is_idle(another):
    """With a queue policy of Triton's, several of 4,000 requests wait for half a second.

    A busy machine may hold requests up for as long, but hardly three times in a row.
    """
    server = another(SLIPWAY_INSTANCE_COUNT="1", SLIPWAY_MAX_BATCH_SIZE="16")

    def ask(_):
        taken = []
        with contextlib.closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
            for _ in range(250):
                begun = time.monotonic()
                connection.request("POST", "/invocations", body, {"Content-Type": JSON})
                connection.getresponse().read()
                taken.append(time.monotonic() - begun)
        return taken

    def waited():
        with ThreadPoolExecutor(16) as pool:
            taken = [each for one in pool.map(ask, range(16)) for each in one]
        return [each for each in taken if 0.45 < each < 0.7]

    body = request(WORD)
    assert any(not waited() for _ in range(3))


@pytest.mark.parametrize("victim", ["triton_python_backend_stub", "bin/tritonserver"])
def test_the_container_ends_with_a_killed_process(another, victim):
    server = another()
    with ThreadPoolExecutor(8) as pool:
        under_load = [pool.submit(server.status, request(WORD)) for _ in range(200)]
        eventually(under_load[0].done)
        os.kill(server.child(victim)[0], signal.SIGKILL)
        assert server.process.wait(timeout=30) != 0
        statuses = Counter(each.result() for each in under_load)
    assert statuses[200] > 0
    if victim == "triton_python_backend_stub":
        assert server.process.returncode == 1
        assert len(server.events("model_process_lost")) == 1


def test_sigterm_lets_requests_in_flight_end(another):
    metrics_port = free_port()
    server = another(
        SLIPWAY_INSTANCE_COUNT="1",
        SLIPWAY_MAX_BATCH_SIZE="8",
        SLIPWAY_METRICS_PORT=str(metrics_port),
    )

    def waiting():
        page = httpx.get(f"http://127.0.0.1:{metrics_port}/metrics", trust_env=False).text
        found = re.search(r"^nv_inference_pending_request_count{.*} (\d+)$", page, re.MULTILINE)
        assert found is not None, page
        return int(found[1])

    words = [f"{WORD} {WORD}"] * 8
    with ThreadPoolExecutor(32) as pool:
        sent = [pool.submit(server.post, request(*words)) for _ in range(32)]
        # Triton has taken one, and others wait for it.
        eventually(lambda: waiting() > 0)
        in_flight = [each for each in sent if not each.done()]
        server.process.terminate()
        ended = [each.exception() or each.result().status_code for each in in_flight]
    assert server.process.wait(timeout=30) == 0
    # Only a client that was not connected yet is refused.
    assert 200 in ended
    assert all(each == 200 or isinstance(each, httpx.ConnectError) for each in ended), ended
    assert not server.child("triton_python_backend_stub")
