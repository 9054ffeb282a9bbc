"""A foundation with a build project, and a model whose weights lie in S3."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.embedded_aws.clients import LoopbackClients
from slipway.project import Project
from slipway.publishing.remote.publish import RemotelyPublished, publish_remotely
from tests.embedded.training import composition
from tests.embedded.training.publishing import Said
from tests.support.accounts import access_to, embedded_aws
from tests.support.prepared_accounts import bootstrap, deploy_foundation
from tests.support.projects import config_text, write_project
from tests.support.stacks import Stacks

WEIGHTS = "s3://weights/tiny/"
ENVIRONMENTS = """\
local:
  account: "123456789012"
  region: us-east-1
  remote_publishing:
    time_limit_minutes: 60
    weights: ["s3://weights/"]
"""
FROM_S3 = (
    "  release:\n    path: build/tiny\n    target: sm75\n",
    f"  weights:\n    source: s3\n    uri: {WEIGHTS}\n"
    "  compile:\n    instance: ml.g4dn.xlarge\n    volume_size_gb: 30\n",
)
_OWN_SCRIPT = (Path(__file__).parents[2] / "golden" / "cases" / "lmi-own-script.yaml").read_text(
    "utf-8"
)
_HUB = (
    "    source: hub\n    repository: google/flan-t5-xxl\n"
    "    revision: ae7c9136adc7555eeccc78cdd960dfd60fb346ce\n"
)
PROJECT = "slipway-local-publish"
STACK = "foundation-local"


class Leaving(Said):
    """Ends the command as Ctrl-C does, once it waits for a build."""

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        raise KeyboardInterrupt


class Remote:
    """A project, in an account with the foundation of its environment."""

    def __init__(self, stacks: Stacks, root: Path) -> None:
        self.stacks = stacks
        self.root = root
        own = _OWN_SCRIPT.replace(_HUB, f"    source: s3\n    uri: {WEIGHTS}\n")
        assert own != _OWN_SCRIPT
        models = {"tiny": config_text("tiny", FROM_S3), "lmi-own-script": own}
        write_project(root, models, environments=ENVIRONMENTS)
        handler = root / "handlers" / "t5" / "model.py"
        handler.parent.mkdir(parents=True)
        handler.write_text("def handle(inputs): ...\n", "utf-8")
        self.access = access_to(stacks.aws.connection.url)
        self.codebuild = stacks.client("codebuild")
        self._of_others = frozenset(build["id"] for build in self._all_builds())

    @property
    def environment(self) -> Environment:
        return Project(self.root).environment("local")

    @property
    def lock(self) -> Path:
        return self.root / "model_configs" / "tiny.lock.json"

    def edit(self, old: str, new: str, file: str = "model_configs/tiny.yaml") -> None:
        path = self.root / file
        text = path.read_text("utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), "utf-8")

    def put_weights(self, mode: str = "ok", **files: str) -> None:
        """Puts weights into S3; each test has its own, so that nothing of another is found."""
        whole = {"config.json": '{"model_type": "gpt2"}', "pytorch_model.bin": "weights"}
        content = {**whole, "own.txt": str(self.root), "tokenizer.json": "{}", **files}
        for name, text in {**content, "mode": mode}.items():
            self.stacks.client("s3").put_object(
                Bucket="weights", Key=f"tiny/{name}", Body=text.encode()
            )

    def publish(self, said: Said | None = None, model: str = "tiny") -> RemotelyPublished:
        project = Project(self.root)
        return publish_remotely(
            project, model, self.environment, self.access, said if said else Said()
        )

    def leave(self, model: str = "tiny") -> list[str]:
        """Starts or joins a build and leaves it; returns what was said."""
        said = Leaving()
        with pytest.raises(KeyboardInterrupt):
            self.publish(said, model)
        return said.notes

    def builds(self) -> list[dict[str, Any]]:
        """Returns this test's builds, newest first."""
        return [build for build in self._all_builds() if build["id"] not in self._of_others]

    def _all_builds(self) -> list[dict[str, Any]]:
        name = PROJECT
        ids = self.codebuild.list_builds_for_project(projectName=name)["ids"]
        if not ids:
            return []
        found = self.codebuild.batch_get_builds(ids=ids)["builds"]
        return sorted(found, key=lambda build: ids.index(build["id"]))


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    """An account with the foundation."""
    directory = tmp_path_factory.mktemp("account")
    with embedded_aws(directory, programs=composition.PROGRAMS) as server:
        clients = LoopbackClients(server.connection)
        found = Stacks(server, clients, "us-east-1")
        found.client("s3").create_bucket(Bucket="weights")
        bootstrap(found.client)
        root = tmp_path_factory.mktemp("deploying")
        (root / "environments.yaml").write_text(ENVIRONMENTS, "utf-8")
        deploy_foundation(found.client, Project(root).environment("local"))
        yield found
        clients.close()


@pytest.fixture
def remote(stacks: Stacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remote:
    # The builds of these tests end in seconds.
    monkeypatch.setattr("slipway.publishing.remote.builds._FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr("slipway.publishing.remote.builds._LAST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr("slipway.publishing.training._FIRST_PAUSE_SECONDS", 0.05)
    root = tmp_path / "project"
    found = Remote(stacks, root)
    found.put_weights()
    return found
