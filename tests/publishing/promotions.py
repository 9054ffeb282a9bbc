"""A project that is promoted from staging to production, and the files of each bucket."""

from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.artifact_place import INCOMING_PREFIX
from slipway.project import Project
from slipway.publishing.promotion import promote
from slipway.publishing.publish import Published
from tests.publishing.checkpoints import safetensors
from tests.publishing.progress import Progress
from tests.publishing.progress import run as publish
from tests.support.projects import PRODUCTION

STAGING = PRODUCTION.model_copy(update={"name": "staging"})
ENVIRONMENTS = """\
local:
  account: "123456789012"
  region: us-east-1
  artifacts: sample
staging:
  account: "210987654321"
  region: eu-west-1
  notification_emails: [on-call@example.com]
production:
  account: "210987654321"
  region: eu-west-1
  notification_emails: [on-call@example.com]
"""
SERVING = """\
  container: tensorrt
  max_batch_size: 8
  max_input_tokens: 64
  max_new_tokens: 42
  default_new_tokens: 12
"""
LMI = (
    SERVING,
    "  container: lmi\n  framework: djl-lmi\n  version: 0.36.0\n  dtype: fp16\n"
    "  max_input_tokens: 64\n  max_new_tokens: 42\n",
)
WEIGHTS = (
    "  release:\n    path: build/tiny\n    target: sm75\n",
    "  weights:\n    source: path\n    path: build/checkpoint\n",
)
NO_ISOLATION = ("  instance_count: 2\n", "  instance_count: 2\n  network_isolation: false\n")
# The limit of a small file, in these tests.
SMALL_BYTES = 100_000
FILES = {
    "config.json": b"{}",
    "empty": b"",
    "model.safetensors": safetensors(bytes(range(256)) * 2048),
    "sub/ünï 雪.txt": b"name",
    "tokenizer.json": b"{}",
}


def contents(access: Access, environment: Environment) -> dict[str, bytes]:
    """What is in the bucket, without what was sent and is not taken yet."""
    client, bucket = access.client("s3"), environment.artifact_bucket
    found = client.list_objects_v2(Bucket=bucket).get("Contents", ())
    return {
        item["Key"]: client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
        for item in found
        if not item["Key"].startswith(INCOMING_PREFIX)
    }


def run(root: Path, access: Access, progress: Progress | None = None, **options: Any) -> Published:
    options = {"source": STAGING, "source_access": access, "within_s3": True} | options
    return promote(Project(root), "tiny", PRODUCTION, access, progress or Progress(), **options)


def refusal(root: Path, access: Access, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(UserError) as caught:
        run(root, access, **options)
    return [(problem.message, problem.remedy) for problem in caught.value.problems]


def published(root: Path, access: Access) -> Published:
    return publish(root, access, STAGING)


def weights_key(root: Path, name: str) -> str:
    locked = (Project(root).lock("tiny").environments or {})["staging"]
    assert locked.weights is not None
    return f"artifacts/{locked.weights.digest}/{name}"
