"""A real S3 API on loopback, s5cmd and boto3 pointed at it, and a project to promote."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.access import Access
from slipway.planning.artifact_place import shared_place
from slipway.publishing import verified_copies
from slipway.publishing.store import ArtifactStore
from tests.publishing.progress import Progress
from tests.publishing.promotions import (
    ENVIRONMENTS,
    FILES,
    LMI,
    NO_ISOLATION,
    SMALL_BYTES,
    STAGING,
    WEIGHTS,
    contents,
)
from tests.support.accounts import access_to, forget_accounts, object_storage
from tests.support.buckets import remove_buckets
from tests.support.command_line import Run
from tests.support.projects import LOCAL, PRODUCTION, config_text, write_files, write_project
from tests.support.versitygw import versitygw


@pytest.fixture(
    scope="session",
    params=["embedded-aws", pytest.param("versitygw", marks=pytest.mark.versitygw)],
)
def s3_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Two servers that have no code in common."""
    if request.param == "versitygw":
        server = versitygw(tmp_path_factory.mktemp("versitygw"), LOCAL.region)
    else:
        server = object_storage()
    with server as url:
        yield url


@pytest.fixture(scope="session")
def shared_access(s3_url: str) -> Access:
    """Reads botocore's models once for all tests."""
    return access_to(s3_url)


@pytest.fixture
def access(shared_access: Access) -> Access:
    """Access to an account that has its bucket and nothing else."""
    forget_accounts()
    client = shared_access.client("s3")
    remove_buckets(client)
    client.create_bucket(Bucket=LOCAL.artifact_bucket)
    return shared_access


@pytest.fixture
def store(access: Access) -> ArtifactStore:
    return ArtifactStore(access, LOCAL, shared_place(LOCAL), Progress())


@pytest.fixture
def keys(access: Access):
    """Returns what is in the bucket, what was sent to be copied apart: key to content."""
    return lambda: contents(access, LOCAL)


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files of a promotion have at most `SMALL_BYTES`."""
    monkeypatch.setattr(verified_copies, "_SMALL_BYTES", SMALL_BYTES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose sample has two files."""
    return write_project(tmp_path, {"tiny": config_text("tiny")}, environments=ENVIRONMENTS)


@pytest.fixture
def checkpoint(root: Path) -> Path:
    """Has the project serve a checkpoint, which is promoted; returns its folder."""
    text = config_text("tiny", LMI, WEIGHTS, NO_ISOLATION)
    (root / "model_configs/tiny.yaml").write_text(text, "utf-8")
    return write_files(root / "build/checkpoint", FILES)


@pytest.fixture
def command(
    root: Path, access: Access, monkeypatch: pytest.MonkeyPatch, slipway_command: Run
) -> Run:
    """Runs a command line in the project, with the account of these tests."""
    monkeypatch.chdir(root)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: access)
    return slipway_command


@pytest.fixture
def account(access: Access) -> Access:
    """An account with the buckets of both environments."""
    for environment in (STAGING, PRODUCTION):
        access.client("s3").create_bucket(Bucket=environment.artifact_bucket)
    return access
