"""Our handler with the sample model on DeepSpeed itself: only the GPU and its kernels are missing.

It needs PyTorch, transformers and DeepSpeed in the interpreter of the handlers.
"""

import pytest

from tests.containers.lmi.real import servers
from tests.containers.lmi.real.sample import COMPLETIONS

pytestmark = [pytest.mark.djl_serving, pytest.mark.torch, pytest.mark.timeout(180)]

DIGEST = "ab" * 32


@pytest.fixture(scope="module")
def deepspeed_itself(home, aws_url, tmp_path_factory):
    servers.require("torch", "transformers", "deepspeed")
    servers.put_sample(aws_url, DIGEST)
    config = servers.config_for(
        home, "deepspeed", max_batch_size=4, max_batch_delay_milliseconds=1000
    )
    files = servers.package_for(config, DIGEST)
    assert "model.py" in files
    with servers.started(home, tmp_path_factory.mktemp("djl"), files, aws_url=aws_url) as server:
        yield server.wait_until_ready()


def test_a_request_alone(deepspeed_itself):
    for prompt, completion in COMPLETIONS.items():
        answer = deepspeed_itself.post({"inputs": prompt, "parameters": {"max_new_tokens": 12}})
        assert (answer.status, answer.document) == (200, [{"generated_text": completion}])


def test_requests_together(deepspeed_itself):
    """What each gets depends on no other, in whichever batches they meet."""
    answers = deepspeed_itself.post_together(
        *({"inputs": prompt, "parameters": {"max_new_tokens": 12}} for prompt in COMPLETIONS),
        {"inputs": 3},
    )
    assert [answer.document for answer in answers[:-1]] == [
        [{"generated_text": completion}] for completion in COMPLETIONS.values()
    ]
    assert answers[-1].document["error"]["code"] == "invalid_request"
    assert "cpu" in deepspeed_itself.log
