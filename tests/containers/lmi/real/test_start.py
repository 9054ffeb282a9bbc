"""What the real DJL Serving does with packages that our rules refuse, and beside another server."""

import json

import pytest

from tests.containers.lmi.real import servers
from tests.containers.lmi.real.packages import echo, seen
from tests.support.processes import is_running
from tests.support.waiting import eventually

pytestmark = pytest.mark.djl_serving

WITHOUT_GUARD = b"""
from djl_python import Output


def handle(inputs):
    output = Output(200, "OK")
    output.add_as_json({"inputs": inputs.get_as_json()["inputs"]})
    return output
"""


NO_NUMBER = 'NumberFormatException: For input string: "abc"'


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"engine": "python"}, "Deep learning engine not found: python"),
        ({"option.tensor_parallel_degree": "abc"}, NO_NUMBER),
        ({"batch_size": "abc"}, NO_NUMBER),
        # A config for several processes names GPUs, which this machine need not have.
        (
            {"engine": "MPI", "option.tensor_parallel_degree": "2"},
            "GPU devices are not enough to run 2 partitions.",
        ),
    ],
)
def test_a_wrong_value_ends_it(start, properties, reason):
    assert reason in start(echo(**properties)).wait_for_end()


def test_an_empty_package_is_healthy_and_answers_nothing(start):
    server = start({}).wait_until_ready()
    assert server.ping().document == {}
    answer = server.post({"inputs": "a"})
    assert answer.status == 400
    assert answer.document["message"] == "Parameter model_name is required."


def test_a_handler_without_a_guard_for_the_first_call_does_not_load(start):
    log = start({**echo(), "model.py": WITHOUT_GUARD}).wait_for_end()
    assert "Failed to initialize model" in log


MEANT = {"option.path": "C:\\new\\u0041", "option.text": "  caf\u00e9 \u4e2d\U0001f600 = #!"}


@pytest.fixture(scope="module")
def with_options(home, tmp_path_factory):
    """A server for all tests of what becomes of a package's options; it is ready."""
    files = echo(option__max_new_tokenz="7", **MEANT)
    files["serving.properties"] += b"option.raw=C:\\models\\gpt\n"
    with servers.started(home, tmp_path_factory.mktemp("djl"), files) as server:
        yield server.wait_until_ready()


def test_a_misspelt_option_is_accepted_in_silence(with_options):
    assert seen(with_options)["max_new_tokenz"] == "7"
    log = with_options.log.splitlines()
    assert [line for line in log if line.startswith(("WARN", "ERROR"))] == []


def test_what_java_unescapes_arrives_as_it_was_meant(with_options):
    given = seen(with_options)
    assert given["path"] == MEANT["option.path"]
    assert given["text"] == MEANT["option.text"]


def test_a_raw_backslash_is_lost(with_options):
    assert seen(with_options)["raw"] == "C:modelsgpt"


def test_two_servers_leave_each_others_workers_alone(start):
    first = start(echo(option__mark="first"))
    worker = seen(first)["pid"]
    second = start(echo(option__mark="second"))
    assert seen(second)["mark"] == "second"
    assert seen(first) == {**seen(first), "mark": "first", "pid": worker}


def test_sigterm_ends_the_server_and_its_worker(start):
    server = start(echo())
    worker = int(seen(server)["pid"])
    status = server.terminate()
    assert status in (143, -15), json.dumps({"status": status, "log": server.log})
    eventually(lambda: not is_running(worker))
