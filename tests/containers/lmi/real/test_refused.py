"""What the real DJL Serving does with packages that our rules refuse, and beside another server."""

import json

import pytest

from slipway import java_properties
from slipway.planning.families.lmi.setup import ordered
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.packages import echo, seen
from tests.support.processes import is_running
from tests.support.waiting import eventually

pytestmark = pytest.mark.djl_serving

NO_LONGER_COPIES_S3URL = (0, 27)
FILLS_GAPS = (0, 27)
ONE_REQUEST = b"""
from djl_python import Output


def handle(inputs):
    if inputs.is_empty():
        return None
    asked = inputs.get_as_json()["inputs"]
    if asked == "raise":
        raise ValueError("no such token")
    if asked == "return":
        return {"not": "an Output"}
    return Output(200, "OK").add_as_json({"got": asked})
"""
WITHOUT_GUARD = ONE_REQUEST.replace(b"    if inputs.is_empty():\n        return None\n", b"")
NO_NUMBER = 'NumberFormatException: For input string: "abc"'


def package(script, **properties):
    given = {"engine": "Python", "minWorkers": "1", "maxWorkers": "1", **properties}
    return {"model.py": script, "serving.properties": java_properties.render(given)}


def inner(files):
    return {f"model/{name}": content for name, content in files.items()}


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"engine": "python"}, "Deep learning engine not found: python"),
        # A file written by hand has the space easily; the rule is `engine_is_accepted`.
        ({"engine": "Python "}, "Deep learning engine not found: Python \n"),
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


def test_an_option_arrives_as_java_reads_it_even_if_it_is_misspelt(start):
    files = echo(option__max_new_tokenz="7", **MEANT)
    files["serving.properties"] += b"option.raw=C:\\models\\gpt\n"
    server = start(files)
    given = seen(server)
    for name, value in MEANT.items():
        assert given[name.removeprefix("option.")] == value
    # A raw backslash is lost.
    assert given["raw"] == "C:modelsgpt"
    assert given["max_new_tokenz"] == "7"
    log = server.log.splitlines()
    assert [line for line in log if line.startswith(("WARN", "ERROR"))] == []


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


def test_a_handler_that_is_not_there_ends_it(start):
    """Only once a worker has started; the rule is `entry_point_is_built_in`."""
    properties = {"engine": "Python", "option.entryPoint": "djl_python.hugging"}
    log = start({"serving.properties": java_properties.render(properties)}).wait_for_end()
    assert "No module named 'djl_python.hugging'" in log


def test_a_handler_of_one_request_fails_every_request_of_a_batch(start):
    """Alone each is answered, so that no first try finds it; the rule is `batches_are_answered`."""
    alone = start(package(ONE_REQUEST, batch_size="2", max_batch_delay="1")).wait_until_ready()
    assert alone.answer({"inputs": "a"}) == (200, {"got": "a"})
    alone.kill()
    # A full batch is computed at once, and one that is not full is never waited for.
    server = start(package(ONE_REQUEST, batch_size="2", max_batch_delay="30000")).wait_until_ready()
    together = server.post_together({"inputs": "a"}, {"inputs": "b"})
    assert [answer.status for answer in together] == [400, 400]
    assert {answer.document["message"] for answer in together} == {
        "Batch output size mismatch, expected: 2, actual: 1"
    }


def test_what_a_handler_does_not_catch_reaches_the_client(start):
    """Which ours does not let happen: `containers/lmi/handler` answers 500 without the reason."""
    server = start(package(ONE_REQUEST)).wait_until_ready()
    reasons = {"raise": "no such token", "return": "Invalid output type: <class 'dict'>"}
    for inputs, error in reasons.items():
        answer = server.post({"inputs": inputs})
        assert (answer.status, answer.document["error"]) == (424, error)
        assert server.ping().status == 200


def test_two_addresses_of_weights_are_refused_or_one_is_passed_over(home, start):
    """A package has one; the rule for a second is `options_have_no_field`."""
    files = echo(option__model_id=str(servers.SAMPLE), option__s3url="s3://bucket/prefix/")
    server = start(files)
    if ordered(home.version) < NO_LONGER_COPIES_S3URL:
        assert "model_id and s3url could not both set!" in server.wait_for_end()
    else:
        assert seen(server)["model_id"] == str(servers.SAMPLE)


def test_the_old_address_of_weights_is_passed_over_in_silence(home, start):
    """Which is why a package of 0.22.1 and later says `option.model_id`."""
    server = start(echo(option__s3url="s3://bucket/prefix/"))
    if ordered(home.version) < NO_LONGER_COPIES_S3URL:
        assert "Download model failed." in server.wait_for_end()
        return
    assert "model_id" not in seen(server)
    assert "start downloading" not in server.log
    assert not [line for line in server.log.splitlines() if line.startswith("[ERROR")]


def test_an_option_in_a_variable_never_wins_over_the_file(home, start):
    """The rule is `environment_leaves_the_file_alone`."""
    given = seen(start(echo(option__mark="file"), OPTION_MARK="variable", OPTION_OTHER="variable"))
    assert given["mark"] == "file"
    assert given.get("other") == ("variable" if ordered(home.version) >= FILLS_GAPS else None)


def test_a_package_in_a_folder_is_found_and_beside_a_file_it_is_not(start):
    """A published package has its files at the top."""
    assert seen(start(inner(echo(option__mark="inner"))))["mark"] == "inner"
    log = start({**inner(echo()), "README.md": b"about this model\n"}).wait_for_end()
    assert "Failed to detect engine of the model: " in log


# That of older versions needs older libraries than the project's.
of_own_handler = pytest.mark.djl_version(at_least="0.36.0")


@pytest.fixture
def needs_own_handler():
    servers.require("torch", "transformers", "peft", "PIL")


@of_own_handler
@pytest.mark.torch
@pytest.mark.usefixtures("needs_own_handler")
def test_a_second_model_in_a_variable_fails_every_request(start, tmp_path):
    """The start is healthy; the rule is `environment_leaves_the_file_alone`."""
    # Without the graph: for that the server would download an engine.
    for path in servers.SAMPLE.iterdir():
        if path.suffix != ".onnx":
            (tmp_path / path.name).symlink_to(path)
    server = start(echo(option__mark="file"), HF_MODEL_ID=str(tmp_path)).wait_until_ready()
    answer = server.post({"inputs": "a"})
    assert answer.status == 400
    assert answer.document["message"] == "Parameter model_name is required."


@of_own_handler
@pytest.mark.torch
@pytest.mark.usefixtures("needs_own_handler")
def test_streams_in_batches_end_the_newest_server(start):
    """With the reason in its log; the rule is `streams_share_no_batch`."""
    properties = {
        "engine": "Python",
        "batch_size": "2",
        "option.entryPoint": "djl_python.huggingface",
        "option.model_id": str(servers.SAMPLE),
        "option.rolling_batch": "disable",
        "option.enable_streaming": "true",
    }
    server = start({"serving.properties": java_properties.render(properties)})
    assert "We cannot enable streaming for dynamic batching." in server.wait_for_end()
