"""A project whose model is compiled by a training job, and what publishing it says."""

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.families import deployment_of
from slipway.planning.lock import LockedArtifact
from slipway.project import Project
from slipway.publishing.publish import Published, publish
from tests.support.accounts import access_to, connection_to, shell_environment
from tests.support.projects import config_text, write_project
from tests.support.starts import count_start

EMBEDDED = Environment(name="local", account="123456789012", region="us-east-1")
# The same account as a real one: credentials and addresses come from the shell.
STAGING = EMBEDDED.model_copy(update={"name": "staging"})
_PLACE = '  account: "123456789012"\n  region: us-east-1\n'
ENVIRONMENTS = f"local:\n{_PLACE}staging:\n{_PLACE}"
COMPILED = (
    "  release:\n    path: build/tiny\n    target: sm75\n",
    "  weights:\n    source: path\n    path: build/checkpoint\n"
    "  compile:\n    instance: ml.g4dn.xlarge\n    volume_size_gb: 30\n",
)
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
FILES = {
    "config.json": b'{"model_type": "gpt2"}',
    "mode": b"ok",
    "shards/1.bin": b"weights",
    "tokenizer.json": b"{}",
}


class Said:
    """Remembers what a publish said, and may end it there."""

    def __init__(self, last_event: int | None = None) -> None:
        self.events: list[tuple[Any, ...]] = []
        self._last_event = last_event

    def _say(self, *event: Any) -> None:
        self.events.append(event)
        if len(self.events) == self._last_event:
            raise KeyboardInterrupt

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        self._say(activity, total_bytes)

    def advance(self, size_bytes: int) -> None:
        self._say("advance", size_bytes)

    def note(self, line: str) -> None:
        self._say("note", line)

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        self._say("job", state)

    @property
    def notes(self) -> list[str]:
        return [event[1] for event in self.events if event[0] == "note"]


class Publishing:
    """A project with a checkpoint, in an account with what a foundation leaves there."""

    key = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"

    def __init__(self, account: Any, root: Path) -> None:
        self.account = account
        self.root = root
        write_project(root, {"tiny": config_text("tiny", COMPILED)}, environments=ENVIRONMENTS)
        self.checkpoint = root / "build" / "checkpoint"
        # Other weights in each test: nothing of another test's is found again.
        self.write(**{"own.txt": str(root).encode()})
        for environment in (EMBEDDED, STAGING):
            account.s3.create_bucket(Bucket=environment.artifact_bucket)
            self.put_parameters(environment.name)
        self._jobs_of_others = frozenset(self.all_jobs())
        self._connection = connection_to(account.url)
        self.access = access_to(account.url)

    def put_parameters(self, environment: str) -> None:
        put = self.account.client("ssm").put_parameter
        values = {"compile-role-arn": self.account.role, "artifact-key-arn": self.key}
        for name, value in values.items():
            put(Name=f"/slipway/{environment}/{name}", Value=value, Type="String", Overwrite=True)

    def write(self, mode: str = "ok", **files: bytes) -> None:
        own = self.checkpoint / "own.txt"
        kept = {"own.txt": own.read_bytes()} if own.exists() else {}
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        for name, content in {**FILES, **kept, "mode": mode.encode(), **files}.items():
            path = self.checkpoint / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def edit_config(self, old: str, new: str) -> None:
        path = self.root / "model_configs" / "tiny.yaml"
        text = path.read_text("utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), "utf-8")

    def run(self, environment: Environment = EMBEDDED, said: Said | None = None) -> Published:
        return publish(
            Project(self.root), "tiny", environment, self.access, said if said else Said()
        )

    def refused(self, environment: Environment = EMBEDDED) -> UserError:
        with pytest.raises(UserError) as caught:
            self.run(environment)
        return caught.value

    @property
    def lock_path(self) -> Path:
        return self.root / "model_configs" / "tiny.lock.json"

    def locked(self, environment: Environment = EMBEDDED) -> LockedArtifact:
        project = Project(self.root)
        config = project.config("tiny", "local").config
        return project.lock("tiny").artifact(deployment_of(config, environment))

    def jobs(self) -> list[dict[str, Any]]:
        return [
            self.account.describe(name)
            for name in self.all_jobs()
            if name not in self._jobs_of_others
        ]

    def all_jobs(self) -> list[str]:
        listed = self.account.sagemaker.get_paginator("list_training_jobs").paginate(
            NameContains="compile-tiny-"
        )
        return [job["TrainingJobName"] for page in listed for job in page["TrainingJobSummaries"]]

    def objects(self, environment: Environment, prefix: str) -> list[dict[str, Any]]:
        pages = self.account.s3.get_paginator("list_objects_v2").paginate(
            Bucket=environment.artifact_bucket, Prefix=prefix
        )
        return [item for page in pages for item in page.get("Contents", ())]

    def body(self, environment: Environment, key: str) -> bytes:
        found = self.account.s3.get_object(Bucket=environment.artifact_bucket, Key=key)
        return found["Body"].read()

    def verify(self, digest: str, environment: Environment = EMBEDDED) -> dict[str, bytes]:
        """Reads an artifact back and checks it against its digest; returns its files."""
        manifest = self.body(environment, f"artifacts/{digest}/manifest.json")
        assert hashlib.sha256(manifest).hexdigest() == digest
        files = {}
        for path, size_bytes, sha256 in json.loads(manifest)["files"]:
            content = self.body(environment, f"artifacts/{digest}/files/{path}")
            assert (len(content), hashlib.sha256(content).hexdigest()) == (size_bytes, sha256)
            files[path] = content
        return files

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        count_start("slipway")
        program = "from slipway.cli.main import main; main()"
        command = [sys.executable, "-c", program, "publish", "tiny", "--env", "staging"]
        return subprocess.Popen(
            [*command, *arguments],
            cwd=self.root,
            env=shell_environment(self._connection)
            | {"PYTHONPATH": str(Path(__file__).parents[3])},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def build_image(self) -> str:
        image = Project(self.root).plan("tiny", STAGING, allow_unpublished=True).image
        ecr, repository = self.account.client("ecr"), {"repositoryName": image.repository}
        with contextlib.suppress(ecr.exceptions.RepositoryAlreadyExistsException):
            ecr.create_repository(**repository)
        digest = hashlib.sha256(str(self.root).encode()).hexdigest()
        config = {"size": 1, "digest": f"sha256:{digest}"}
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": []}
        tag = f"{image.tag}-compiler"
        with contextlib.suppress(ecr.exceptions.ImageAlreadyExistsException):
            ecr.put_image(**repository, imageTag=tag, imageManifest=json.dumps(manifest))
        return tag
