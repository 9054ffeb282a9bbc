"""What the embedded AWS cannot serve, as `slipway preflight` asks it."""

import dataclasses
import json
import urllib.parse
import urllib.request
from functools import partial

from slipway.embedded_aws.hosting.families import programs
from slipway.embedded_aws.hosting.families.triton.triton_server import missing_backends
from slipway.embedded_aws.identity import SERVABLE_PATH
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.accounts import embedded_aws

ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com"


def asked(server: EmbeddedAws, image: str, *backends: str) -> str | None:
    query = urllib.parse.urlencode({"image": f"{ECR}/{image}", "backend": backends}, doseq=True)
    request = urllib.request.Request(  # noqa: S310  # loopback
        f"{server.connection.url}{SERVABLE_PATH}?{query}",
        headers={"Authorization": server.connection.authorization(SERVABLE_PATH)},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer)["reason"]


def test_it_says_which_images_and_back_ends_are_not_on_this_machine(tmp_path):
    (tmp_path / "backends/python").mkdir(parents=True)
    triton = dataclasses.replace(
        programs()["sagemaker-tritonserver"], find_missing=partial(missing_backends, tmp_path)
    )
    known = {**programs(), "sagemaker-tritonserver": triton}
    with embedded_aws(tmp_path / "aws", programs=known) as server:
        assert asked(server, "slipway/tensorrt:1") is None
        assert "No program of the embedded AWS stands for image" in str(asked(server, "mine:1"))
        image = "sagemaker-tritonserver:26.05-py3"
        assert asked(server, image, "python") is None
        assert asked(server, image, "python", "onnxruntime") == (
            "The Triton of this machine does not have the backend onnxruntime. Set TRITON_HOME to "
            "a Triton that has it, and start the embedded AWS again."
        )
