"""The real DJL Serving of the image's version on the files that `make verify-aws` publishes."""

import pytest

from tests.containers.lmi.real import servers
from tools.verify_aws.life import TEXT

pytestmark = [
    pytest.mark.djl_serving,
    pytest.mark.djl_version(at_least="0.36.0", at_most="0.36.0"),
]
MODEL = servers.ROOT / "tools" / "verify_aws" / "model"


@pytest.fixture
def files():
    return {path.name: path.read_bytes() for path in MODEL.iterdir() if path.is_file()}


def test_the_model_answers_and_fails_on_purpose(start, files):
    server = start(files, OPT_OUT_TRACKING="true").wait_until_ready()
    answer = server.post({"inputs": TEXT})
    assert (answer.status, answer.document) == (200, {"reversed": "yawpils"})
    assert answer.content_type == "application/json"
    assert server.post({"inputs": "fail"}).status == 500
    assert server.post({"inputs": TEXT}).status == 200


def test_the_model_cannot_be_loaded_on_purpose(start, files):
    log = start(files, OPT_OUT_TRACKING="true", VERIFY_AWS_FAULT="start").wait_for_end()
    assert "the model fails on purpose" in log
