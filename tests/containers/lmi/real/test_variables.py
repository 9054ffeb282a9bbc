"""Settings as variables of the container, beside the same settings in a package.

With the server's own handler of 0.36 and the sample model: what the server says that it applies and
what it answers are the same. Nothing is a stand-in but the accelerator. The server that is told by
variables finds the weights in the model's directory, as SageMaker places them, and reaches no S3.

It needs PyTorch, transformers, peft and Pillow in the interpreter of the handlers. The handlers of
0.23 and 0.27 ask for older libraries than the project's, and that of 0.23, given them, for a GPU.
"""

import contextlib
import re

import pytest

from slipway.errors import UserError
from slipway.facts.lmi.versions import model_of_variables
from slipway.publishing.families.lmi.package import require_plain_weights
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.packages import SLEEPER
from tests.containers.lmi.real.sample import COMPLETIONS, greedy
from tests.support.deployments import lmi
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.djl_serving,
    pytest.mark.djl_version(at_least=model_of_variables()[1]),
]

DIGEST = "ab" * 32
WEIGHTS_URI = f"s3://{servers.BUCKET}/artifacts/{DIGEST}/files/"
SETTINGS = {
    "entry_point": "djl_python.huggingface",
    "max_queue_length": 77,
    "predict_timeout_seconds": 33,
    "trust_remote_code": False,
    "options": {"handler": "handle", "task": "text-generation", "low_cpu_mem_usage": True},
}
BATCHES = {"max_batch_size": 4, "max_batch_delay_milliseconds": 250}
ONE_BY_ONE = {"rolling_batch": "disable"}


def told_by_variables(home, **serving):
    config = servers.config_without_code(home, configuration="environment", **serving)
    return lmi(config).environment_with(has_settings=True)


@pytest.fixture(scope="module", params=[ONE_BY_ONE, BATCHES], ids=["one by one", "batches"])
def both(request, home, aws_url, tmp_path_factory):
    servers.require("torch", "transformers", "peft", "PIL")
    weights = servers.put_sample(aws_url, DIGEST)
    by_file = servers.config_without_code(home, configuration="file", **SETTINGS, **request.param)
    told = told_by_variables(home, **SETTINGS, **request.param)
    assert lmi(by_file).container_environment() == {}
    with contextlib.ExitStack() as stack:
        started = []
        package = servers.package_for(by_file, DIGEST)
        assert list(package) == ["serving.properties"]
        for files, s3, declared in ((package, aws_url, {}), (weights, None, told)):
            directory = tmp_path_factory.mktemp("djl")
            server = stack.enter_context(
                servers.started(home, directory, files, aws_url=s3, **declared)
            ).wait_until_ready()
            started.append(server)
        yield started[0], started[1]


def applied(server):
    """What the server says that it applies to its one model."""
    (block,) = re.findall(r"Apply per model settings:\n((?: {4}\S.*\n)+)", server.log)
    return dict(line.strip().split(": ", 1) for line in block.splitlines())


@pytest.mark.torch
def test_it_applies_the_same_settings(both):
    """But for two keys that the server has elsewhere: where the model is, and the retries."""
    by_file, by_variables = (applied(server) for server in both)
    assert by_file.pop("option.model_id") == WEIGHTS_URI
    assert by_file.pop("retry_threshold") == "10"
    assert by_file == by_variables
    assert by_file["job_queue_size"] == "77"
    assert by_file["option.predict_timeout"] == "33"
    assert by_file["option.handler"] == "handle"


@pytest.mark.torch
def test_batches_turn_the_rolling_batch_off(both):
    """The server looks for the batch size in the file alone, so the variables say both."""
    for server in both:
        found = applied(server)
        assert found["option.rolling_batch"] == "disable"
        assert (found["max_dynamic_batch_size"], found["max_batch_delay"]) in (
            ("1", "100"),
            ("4", "250"),
        )


@pytest.mark.torch
@pytest.mark.parametrize("prompt", COMPLETIONS)
def test_it_answers_the_same(both, prompt):
    answers = [server.post(greedy(prompt)) for server in both]
    assert answers[0] == answers[1]
    text = prompt + COMPLETIONS[prompt]
    assert (answers[0].status, answers[0].document) == (200, [{"generated_text": text}])


@pytest.mark.torch
@pytest.mark.djl_version(at_least="0.36.0")
def test_a_body_that_is_no_json_is_answered_200(both):
    """Which is what our handler is for: it answers 400, as JSON."""
    for server in both:
        answer = server.post(b"{")
        assert answer.status == 200
        told = b"Input Parsing failed. Ensure that the request payload is valid"
        assert answer.body.startswith(told)


@pytest.fixture
def start_with_a_handler(home, tmp_path_factory):
    """Starts servers by variables alone, on weights beside which a model.py lies.

    Publishing refuses such weights: it is what the server would run.
    """
    weights = {**servers.WEIGHTS, "model.py": SLEEPER}
    with pytest.raises(UserError, match=r"the weights have model\.py"):
        require_plain_weights([*servers.WEIGHTS, "model.py"])
    told = told_by_variables(home, **ONE_BY_ONE, predict_timeout_seconds=2)
    with contextlib.ExitStack() as stack:

        def start(*without):
            declared = {name: value for name, value in told.items() if name not in without}
            directory = tmp_path_factory.mktemp("djl")
            return stack.enter_context(
                servers.started(home, directory, weights, **declared)
            ).wait_until_ready()

        yield start


def test_weights_in_folders_alone_would_be_models_of_their_own(start, home):
    """Why publishing refuses them: the server takes each folder for a model."""
    told = told_by_variables(home, **ONE_BY_ONE)
    folders = {"one/model.py": SLEEPER, "two/model.py": SLEEPER}
    with pytest.raises(UserError, match="no file beside their folders"):
        require_plain_weights(["one/model.safetensors", "two/model.safetensors"])
    server = start(folders, **told).wait_until_ready()
    assert len(re.findall(r"Initializing model: (?:one|two)=file:", server.log)) == 2


@pytest.mark.parametrize("without", [(), ("SERVING_RETRY_THRESHOLD",)], ids=["all", "no retries"])
def test_a_slow_call_is_survived_by_variables_too(start_with_a_handler, without):
    server = start_with_a_handler(*without)
    assert server.answer({"seconds": 0}) == (200, {"slept": 0})
    late = server.post({"seconds": 60})
    assert (late.status, late.document["type"]) == (503, "WlmException")
    if without:
        assert eventually(lambda: server.ping().status == 500)
    else:
        assert eventually(lambda: server.post({"seconds": 0}).status == 200)
        assert server.ping().status == 200
