"""The start of the container: variables and files checked, the repository written, the server run.

A program of a few lines stands for the server here; `test_server.py` has the real one.
"""

import json
import os
import signal
import socket
import sys
import threading

import pytest

from containers.serving.predictor import ModelLoadError
from containers.serving.settings import EnvironmentReader, SettingsError
from containers.triton import server_process
from containers.triton.settings import TritonSettings
from containers.triton.start import text_model
from tests.support.logging_programs import ROOT, LoggingProgram
from tests.support.messages import message_of
from tests.support.page_runs import free_port

CONFIG = {
    "num_layers": 1,
    "num_heads": 2,
    "d_kv": 4,
    "vocab_size": 11,
    "decoder_start_token_id": 0,
    "eos_token_id": 1,
}
# Tells how it was started. Then it acts as its copies would: it connects, and ends on a word.
SERVER = """\
#!{python}
import json, os, signal, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from containers.triton.server_process import hold_connection
(repository,) = [a.partition("=")[2] for a in sys.argv if a.startswith("--model-repository=")]
files = {{str(p.relative_to(repository)): p.read_text() for p in Path(repository).rglob("*.*")}}
(config,) = [text for name, text in files.items() if name.endswith("/config.pbtxt")]
print(json.dumps({{"event": "told", "arguments": sys.argv[1:], "files": files}}))
connection = hold_connection(f"slipway-triton-{{os.getppid()}}")
assert f"slipway-triton-{{os.getppid()}}" in config
print(json.dumps({{"event": "ready"}}), flush=True)
if sys.stdin.readline() == "lose\\n":
    connection.close()
    sys.stdin.readline()
sys.exit(7)
"""


@pytest.fixture
def model_dir(tmp_path):
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    for name in ("tokenizer.json", "encoder.onnx", "decoder.onnx"):
        (directory / name).touch()
    return directory


@pytest.fixture
def environment(tmp_path, model_dir):
    server = tmp_path / "tritonserver"
    server.write_text(SERVER.format(python=sys.executable, root=str(ROOT)), "utf-8")
    server.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return {
        "HOME": str(home),
        "SAGEMAKER_BIND_TO_PORT": str(free_port()),
        "SLIPWAY_TRITON_SERVER": str(server),
        "SM_MODEL_DIR": str(model_dir),
    }


@pytest.fixture
def start(environment):
    started = []

    def begin(**changes):
        variables = {"PATH": os.environ["PATH"], **environment, **changes}
        started.append(LoggingProgram("containers.triton", "serve", environment=variables))
        return started[-1]

    yield begin
    for container in started:
        container.kill()


@pytest.mark.parametrize("home", ["/not-there", ""])
def test_a_user_without_a_home_is_served(start, tmp_path, home):
    container = start(HOME=home, TMPDIR=str(tmp_path))
    arguments = container.until("told")["arguments"]
    (option,) = [each for each in arguments if each.startswith("--model-repository=")]
    assert option.startswith(f"--model-repository={tmp_path}/slipway-triton-")


def test_the_server_gets_a_repository_made_of_the_variables(start, model_dir):
    container = start(
        SAGEMAKER_TRITON_DEFAULT_MODEL_NAME="spelling",
        SLIPWAY_INSTANCE_COUNT="2",
        SLIPWAY_MAX_BATCH_SIZE="16",
        SLIPWAY_MAX_QUEUE_LENGTH="32",
    )
    told = container.until("told")
    assert sorted(told["files"]) == ["spelling/1/model.py", "spelling/config.pbtxt"]
    config = told["files"]["spelling/config.pbtxt"]
    for line in (
        'backend: "python"',
        "max_batch_size: 16",
        "count: 2",
        "kind: KIND_CPU",
        "enable: false",
        "batch_size: 16",
        f'string_value: "{model_dir}"',
    ):
        assert line in config, config
    assert {
        # Triton has no front end that another machine reaches.
        "--http-address=127.0.0.1",
        "--allow-sagemaker=false",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--log-verbose=0",
    } <= set(told["arguments"])
    container.tell("end")
    assert container.end() == 7


def test_the_container_ends_with_the_first_lost_copy(start):
    container = start()
    container.until("ready")
    container.tell("lose")
    lost = container.until("model_process_lost")
    assert lost["level"] == "ERROR"
    assert container.end() == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(start, number):
    container = start()
    container.until("ready")
    container.process.send_signal(number)
    assert container.until("server_ended")["status"] in (-signal.SIGTERM, 1)
    assert container.end() != 0


def test_a_port_that_is_taken(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        container = start(SAGEMAKER_BIND_TO_PORT=port)
        message = container.until("listen_failed")["message"]
    assert message == f"cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert container.end() == 1


def test_every_bad_variable_is_named_at_once(start):
    container = start(
        SLIPWAY_MAX_BATCH_SIZE="0", SLIPWAY_MAX_QUEU_LENGTH="8", SAGEMAKER_BIND_TO_PORT="x"
    )
    problems = container.until("settings_invalid")["problems"]
    assert len(problems) == 3
    assert "did you mean SLIPWAY_MAX_QUEUE_LENGTH?" in " ".join(problems)
    assert container.end() == 1


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"SLIPWAY_MAX_BATCH_SIZE": "9", "SLIPWAY_MAX_QUEUE_LENGTH": "8"}, "LENGTH=8 is below"),
        # It would lead out of the repository.
        *(
            ({"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": name}, "cannot be a directory's name")
            for name in ("..", ".", "a/b", "/tmp/a")  # noqa: S108  (not a file)
        ),
    ],
)
def test_variables_that_cannot_be_followed(environ, message):
    reader = EnvironmentReader(environ)
    TritonSettings.read(reader)
    with pytest.raises(SettingsError, match=message):
        reader.finish()


def test_what_the_model_directory_lacks_is_named_at_once(start, model_dir):
    (model_dir / "tokenizer.json").unlink()
    (model_dir / "decoder.onnx").unlink()
    container = start()
    failed = container.until("model_load_failed")
    assert failed["message"].endswith("lacks tokenizer.json, decoder.onnx")
    assert container.end() == 1


def test_a_config_without_its_fields(model_dir):
    (model_dir / "config.json").write_text('{"num_layers": 2, "d_kv": "x"}', "utf-8")
    message = message_of(ModelLoadError, text_model, TritonSettings(model_dir=model_dir))
    for name in ("num_heads", "d_kv", "vocab_size", "decoder_start_token_id", "eos_token_id"):
        assert f"{name} must be" in message


def test_a_server_that_is_not_there(start):
    container = start(SLIPWAY_TRITON_SERVER="/nowhere/tritonserver")
    assert "`make triton` installs it" in container.until("server_missing")["message"]
    assert container.end() == 1


def test_engines_make_copies_on_each_gpu(model_dir):
    for name in ("encoder.engine", "decoder.engine"):
        (model_dir / name).touch()
    config = text_model(TritonSettings(model_dir=model_dir)).config()
    assert "kind: KIND_GPU" in config
    (model_dir / "decoder.engine").unlink()
    with pytest.raises(ModelLoadError, match=r"lacks decoder\.engine"):
        text_model(TritonSettings(model_dir=model_dir))


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_another_users_connection_is_no_copy_of_the_model(monkeypatch):
    lost = threading.Event()

    def lose():
        lost.set()
        raise EOFError  # Ends the thread that watches.

    def watch_until_lost():
        with pytest.raises(EOFError):
            server_process._watch(listener, lose)

    name = server_process.address(os.getpid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(name)
        listener.listen()
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
        watch = threading.Thread(target=watch_until_lost, daemon=True)
        watch.start()
        with server_process.hold_connection(name[1:]) as stranger:
            stranger.settimeout(5)
            assert stranger.recv(1) == b""
        assert not lost.is_set()

        monkeypatch.setattr(os, "getuid", lambda: own)
        server_process.hold_connection(name[1:]).close()
        assert lost.wait(5)
        watch.join(5)
