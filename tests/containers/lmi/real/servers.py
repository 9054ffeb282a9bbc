"""The real DJL Serving as a process, started as the embedded AWS starts it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from slipway.config.sections.serving.lmi import LmiServing
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.families import container_environment, programs
from slipway.embedded_aws.hosting.families.lmi import djl_serving
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.embedded_aws.hosting.launch.container_spec import PortPool
from slipway.facts.images import image, versions
from slipway.planning.artifact_place import shared_place
from slipway.planning.families.lmi.handlers import our_handler
from slipway.planning.families.lmi.setup import ordered
from slipway.publishing.families.lmi.package import lmi_package, script_files
from tests.support.accounts import connection_to
from tests.support.deployments import lmi
from tests.support.projects import LOCAL, PRODUCTION, model_config
from tests.support.starts import count_start
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[4]
HANDLER = "containers/lmi/handler"
SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
STAND_INS = Path(__file__).parent / "stand_ins"
BUCKET = "artifacts"
PLACE = replace(shared_place(LOCAL), bucket=BUCKET)
WEIGHTS_DIGEST = "cd" * 32
WEIGHTS = {
    "config.json": json.dumps(
        {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "max_position_embeddings": 64,
        }
    ).encode()
}
WORKER_STARTED = "Python engine started."
PYTHON = os.environ.get("SLIPWAY_DJL_PYTHON") or sys.executable
"""Interpreter of the handlers."""
_EVERYWHERE = ("0.23.0", "0.36.0")
# Batches of four requests that are sent together, however slow the machine: a batch is computed as
# soon as it is full, and no test waits for one that is not.
BATCHES_OF_FOUR = {"max_batch_size": 4, "max_batch_delay_milliseconds": 30_000}
# Batches of one, where requests are sent one by one.
BATCHES_OF_ONE = {"max_batch_size": 4, "max_batch_delay_milliseconds": 1}
_START_SECONDS = 120.0
# How often a server is started that lost sight of its worker; more than every third start of 0.21
# did.
_STARTS = 20
_ANSWER_SECONDS = 60.0
_STOP_SECONDS = 30.0
_PORTS = PortPool()
# Half the processor's time of a start goes into code that an optimising compiler makes, and into
# threads that collect garbage. No test runs long enough to gain by either.
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Home:
    """A DJL Serving: where it lies, and its version by the name of its jar."""

    path: Path
    version: str

    @classmethod
    def of(cls, path):
        version = djl_serving.version_of(path)
        assert version, f"{path}/lib has not one serving-VERSION.jar"
        return cls(path, version)

    def is_within(self, at_least=None, at_most=None):
        own = ordered(self.version)
        return (at_least is None or ordered(at_least) <= own) and (
            at_most is None or own <= ordered(at_most)
        )

    @property
    def program(self):
        environ = {**os.environ, "DJL_SERVING_HOME": str(self.path)}
        return ContainerProgram(djl_serving.COMMAND, djl_serving.image_environment(environ))


def homes():
    """The servers that every test runs on: all that DJL_SERVING_HOME names, or an old and a new."""
    found = [Home.of(path) for path in djl_serving.server_homes(os.environ)]
    if os.environ.get("DJL_SERVING_HOME"):
        return found
    return [home for home in found if home.version in _EVERYWHERE]


def home_of(version):
    """The server of one version, which the group has; DJL_SERVING_HOME may name others alone."""
    for path in djl_serving.server_homes(os.environ):
        if djl_serving.version_of(path) == version:
            return Home.of(path)
    raise AssertionError(f"no DJL Serving {version}: `make djl-serving` builds it")


def require(*modules):
    """Fails where SLIPWAY_DJL_PYTHON names an interpreter that has not all of these modules."""
    found = subprocess.run(
        [PYTHON, "-c", "import " + ", ".join(modules)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, f"{PYTHON}: {found.stderr}"


def config_for(home, library, **serving):
    """A config with our handler, for the image of that version that has `library`.

    In later versions there is none: there the handler and its calls are what is tested. The engine
    is Python, for the others count GPUs before they start.
    """
    frameworks = (f"djl-{library}", "djl-deepspeed", "djl-lmi")
    framework = next(name for name in frameworks if home.version in versions(name))
    return _config(home, framework, script=HANDLER, **serving)


def config_of_our_image(home, library, **serving):
    framework = f"djl-{library}"
    assert our_handler(framework, home.version) is not None
    return _config(home, framework, image="built", **serving)


def config_without_code(home, **serving):
    return _config(home, "djl-lmi", **serving)


def _config(home, framework, **serving):
    section = {
        "container": "lmi",
        "framework": framework,
        "version": home.version,
        "engine": "Python",
        "dtype": "fp32",
        **serving,
    }
    endpoint = {
        "instances": ["ml.g5.2xlarge"],
        "container_startup_health_check_timeout_seconds": 600,
        "network_isolation": False,
    }
    return model_config(serving=section, endpoint=endpoint)


def image_tag(config):
    assert isinstance(config.serving, LmiServing)
    return image(config.serving.framework, config.serving.version, "us-east-1").tag


def package_for(config, digest=WEIGHTS_DIGEST):
    """What `slipway publish` sends for it."""
    deployment = lmi(config, PRODUCTION)
    return lmi_package(deployment, script_files(deployment.serving, ROOT), digest).rendered(PLACE)


def put_weights(s3, weights=WEIGHTS, digest=WEIGHTS_DIGEST):
    """Makes the bucket, and puts there what packages name as their weights."""
    s3.create_bucket(Bucket=BUCKET)
    for name, content in weights.items():
        key = f"artifacts/{digest}/files/{name}"
        s3.put_object(Bucket=BUCKET, Key=key, Body=content)


def put_sample(aws_url, digest):
    """Puts the sample model where packages name it as their weights; returns its files."""
    clients = LoopbackClients(connection_to(aws_url))
    weights = {path.name: path.read_bytes() for path in SAMPLE.iterdir()}
    put_weights(clients.client("s3", "us-east-1"), weights, digest)
    clients.close()
    return weights


def stand_in_path(library):
    """PYTHONPATH with the stand-ins for `library`, torch and transformers."""
    return os.pathsep.join(map(str, (ROOT, STAND_INS / "common", STAND_INS / library)))


def path_in_our_image(library):
    """PYTHONPATH as our image has it, with the same stand-ins."""
    inside = programs()["slipway/lmi"].environment["PYTHONPATH"]
    return os.pathsep.join((inside, stand_in_path(library)))


@dataclass(frozen=True)
class Answer:
    status: int
    content_type: str | None
    body: bytes

    @property
    def document(self):
        return json.loads(self.body)


class DjlServing:
    def __init__(self, process, port, log_file):
        self._process = process
        self._port = port
        self._log_file = log_file

    @property
    def log(self):
        """What it wrote so far, without the colours."""
        return re.sub(r"\x1b\[[\d;]*m", "", self._log_file.read_text(errors="replace"))

    def request(self, method, path, body=b"", **headers):
        connection = HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_SECONDS)
        with contextlib.closing(connection):
            connection.request(
                method, path, body, {name.replace("_", "-"): headers[name] for name in headers}
            )
            response = connection.getresponse()
            return Answer(response.status, response.getheader("Content-Type"), response.read())

    def ping(self):
        return self.request("GET", "/ping")

    def post(self, body, content_type="application/json"):
        encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", "/invocations", encoded, Content_Type=content_type)

    def answer(self, body):
        answer = self.post(body)
        return answer.status, answer.document

    @contextlib.contextmanager
    def streaming(self, body):
        """Sends a body; the answer is there to read as soon as it begins."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_SECONDS)
        with contextlib.closing(connection):
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/invocations", json.dumps(body).encode(), headers)
            yield connection.getresponse()

    def post_together(self, *bodies):
        with ThreadPoolExecutor(len(bodies)) as pool:
            return list(pool.map(self.post, bodies))

    def has_copied(self, digest):
        """Whether the server copied the weights from where packages name them."""
        address = f"s3://{BUCKET}/artifacts/{digest}/files/"
        return f"S3 url found, start downloading from {address}" in self.log

    def generated_for(self):
        lines = re.findall(r"stand-in: generates for (\[.*\])", self.log)
        return [json.loads(line) for line in lines]

    def generated_since(self, before, calls=1):
        """The prompts of the calls after the first ones, once there are as many as expected.

        The log may come a moment after the answer.
        """
        eventually(lambda: len(self.generated_for()) >= before + calls)
        return self.generated_for()[before:]

    def wait_until_ready(self, seconds=_START_SECONDS):
        assert self.becomes_ready(seconds), f"the server lost sight of its worker:\n{self.log}"
        return self

    def becomes_ready(self, seconds=_START_SECONDS):
        """Waits until it is ready; False where it lost sight of its worker, as 0.21 may.

        That version may look whether the worker has started before it has noted that it has
        (PyProcess.setStarted). It then waits for the worker to end, which listens for 30 s more,
        and ends with "Python stream closed unexpectedly".
        """
        deadline = time.monotonic() + seconds
        while not self._answers_ping():
            _, started, since = self.log.partition(WORKER_STARTED)
            if started and "Process not started, waiting for process end" in since:
                return False
            assert self._process.poll() is None, f"the server ended:\n{self.log}"
            assert time.monotonic() < deadline, f"the server is not ready:\n{self.log}"
            time.sleep(0.1)
        return True

    def wait_for_end(self):
        try:
            self._process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the server does not end:\n{self.log}") from error
        return self.log

    def terminate(self):
        """Sends SIGTERM to the started process alone; returns its status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(_STOP_SECONDS)

    def kill(self):
        """As the embedded AWS's supervisor does at the end: the whole group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _answers_ping(self):
        try:
            return self.ping().status == 200
        except (OSError, HTTPException):
            return False


@contextlib.contextmanager
def started(home, directory, files, *, aws_url=None, **declared):
    """Starts a server on a package in an empty directory; `declared` is the model's Environment."""
    model = directory / "model"
    for name, content in files.items():
        path = model / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    model.mkdir(exist_ok=True)
    port = _PORTS.take()
    environment = container_environment(
        program=home.program,
        declared=declared,
        region="us-east-1",
        home=directory,
        connection=None if aws_url is None else connection_to(aws_url),
    ) | {"SAGEMAKER_BIND_TO_PORT": str(port), "SM_MODEL_DIR": str(model)}
    environment.setdefault("JDK_JAVA_OPTIONS", _QUICK_JAVA)
    count_start("jvm")
    log_file = directory / "log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            home.program.command,
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = DjlServing(process, port, log_file)
    try:
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def ready(home, new_directory, files, **keywords):
    """Starts a server and waits for it; again where it lost sight of its worker, and only there."""
    for _ in range(_STARTS):
        with started(home, new_directory(), files, **keywords) as server:
            if server.becomes_ready():
                yield server
                return
    raise AssertionError(f"of {_STARTS} starts every one lost sight of its worker")
