"""The server's own handler with the sample model: nothing is a stand-in but the accelerator.

It needs PyTorch, transformers, peft and Pillow in the interpreter of the handlers.
The handlers of 0.23 and 0.27 ask for older libraries than the project's, and that of 0.23, given
them, for a GPU.
"""

import pytest

from tests.containers.lmi.real import servers
from tests.containers.lmi.real.sample import COMPLETIONS, greedy

pytestmark = [
    pytest.mark.djl_serving,
    pytest.mark.torch,
    pytest.mark.djl_version(at_least="0.36.0"),
]

DIGEST = "ef" * 32


@pytest.fixture(scope="module")
def own_handler(home, aws_url, tmp_path_factory):
    servers.require("torch", "transformers", "peft", "PIL")
    servers.put_sample(aws_url, DIGEST)
    config = servers.config_without_code(
        home, entry_point="djl_python.huggingface", rolling_batch="disable"
    )
    files = servers.package_for(config, DIGEST)
    assert list(files) == ["serving.properties"]
    with servers.started(home, tmp_path_factory.mktemp("djl"), files, aws_url=aws_url) as server:
        yield server.wait_until_ready()


@pytest.mark.parametrize("prompt", COMPLETIONS)
def test_a_package_without_code_answers(own_handler, prompt):
    answer = own_handler.post(greedy(prompt))
    text = prompt + COMPLETIONS[prompt]
    assert (answer.status, answer.document) == (200, [{"generated_text": text}])


def test_a_body_that_is_no_json_is_answered_200(own_handler):
    """Which is what our handler is for: it answers 400, as JSON."""
    answer = own_handler.post(b"{")
    assert answer.status == 200
    assert answer.body.startswith(b"Input Parsing failed. Ensure that the request payload is valid")
