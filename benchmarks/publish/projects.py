"""Projects with the files to publish, one for each work."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from benchmarks.publish.design import Size, Work
from slipway.config.environments import Environment
from slipway.publishing import hashes
from slipway.publishing.manifest import Manifest, Snapshot
from slipway.publishing.progress import Progress

ACCOUNT, REGION = "123456789012", "us-east-1"
ENVIRONMENT = "bench"
_FILES = "files"
_ENVIRONMENTS = f"""\
{ENVIRONMENT}:
  account: "{ACCOUNT}"
  region: {REGION}
  artifacts: sample
"""
_CONFIG = """\
name: {name}
description: Files to publish
model:
  family: gpt2
  parameters: 124439808
serving:
  container: tensorrt
  max_batch_size: 1
  max_input_tokens: 64
  max_new_tokens: 64
  default_new_tokens: 12
artifacts:
  sample:
    path: files
endpoint:
  instances: [ml.g4dn.xlarge]
alarms:
  model_latency_p99_milliseconds: 600
"""
# Each block of a file is different, as weights are.
_BLOCK_BYTES = 1 << 20
# Younger files are hashed again at the next publish.
_SETTLED_SECONDS = 2.1


@dataclass(frozen=True)
class Source:
    """A project whose one model has the files of a work."""

    work: Work
    size: Size
    root: Path

    @property
    def files(self) -> Path:
        return self.root / _FILES

    @property
    def project(self) -> str:
        """Returns the project's name, so that each work has a bucket of its own."""
        return self.work.model.replace("-", "")

    @property
    def bucket(self) -> str:
        environment = Environment.model_validate(
            {
                "name": ENVIRONMENT,
                "project": self.project,
                "account": ACCOUNT,
                "region": REGION,
            }
        )
        return environment.artifact_bucket

    def make(self) -> None:
        configs = self.root / "model_configs"
        configs.mkdir(parents=True)
        name = self.work.model
        (configs / f"{name}.yaml").write_text(_CONFIG.format(name=name), "utf-8")
        (self.root / "environments.yaml").write_text(
            f"project: {self.project}\n{_ENVIRONMENTS}", "utf-8"
        )
        self.files.mkdir()
        write = _sparse if self.work is Work.PREFIX else _random
        for number in range(self.size.file_count):
            write(self.files / f"model-{number:05}.engine", self.size.file_bytes)

    def forget(self) -> None:
        """Removes what an earlier publish left, so that the next one hashes every file."""
        shutil.rmtree(self.root / ".slipway", ignore_errors=True)
        for lock in (self.root / "model_configs").glob("*.lock.json"):
            lock.unlink()

    def known_manifest(self) -> Manifest:
        """Returns a manifest of made-up hashes, and has the project keep them as known.

        The files are sparse, and the measured publish reads none of them.
        """
        known = hashes.KnownHashes.of(
            self.root, self.files, mock.create_autospec(Progress, instance=True)
        )
        # As if the files were older than the time within which hashes are not kept.
        later = replace(known, now=lambda: time.time() + _SETTLED_SECONDS)

        def of_name(path: Path, _advance: Callable[[int], None]) -> str:
            return hashlib.sha256(path.name.encode()).hexdigest()

        with mock.patch.object(hashes, "sha256_of", of_name):
            return Snapshot.of(self.files, _FILES, later).manifest


def settle() -> None:
    """Waits until new files are old enough for their hashes to be kept."""
    time.sleep(_SETTLED_SECONDS)


def _random(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        for begin in range(0, size_bytes, _BLOCK_BYTES):
            file.write(os.urandom(min(_BLOCK_BYTES, size_bytes - begin)))


def _sparse(path: Path, size_bytes: int) -> None:
    path.touch()
    os.truncate(path, size_bytes)
