"""Accounts: an empty one for a module, and for whole commands one that has the foundation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.accounts import embedded_aws
from tests.support.clocks import MovableClock
from tests.support.workbench import MODEL, SHIPPED, SHIPPED_MODELS, Workbench


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with embedded_aws(tmp_path_factory.mktemp("account")) as server:
        yield server


@pytest.fixture(scope="module")
def clients(server: EmbeddedAws) -> Iterator[LoopbackClients]:
    clients = LoopbackClients(server.connection)
    yield clients
    clients.close()


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def users_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Gives this process the AWS profile of a user.

    The profile exists, because an embedded AWS in this process makes clients of its own.
    """
    config = tmp_path / "config"
    config.write_text("[profile mine]\n", "utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "mine")


@pytest.fixture
def empty_account(tmp_path: Path) -> Iterator[Workbench]:
    """A bootstrapped account with nothing else in it."""
    with Workbench(tmp_path) as bench:
        bench.bootstrap()
        yield bench


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An account with the foundation and the published sample, and an assembly of what is shipped.

    Tests destroy what they deploy. A test that ends the embedded AWS needs one of its own.
    """
    with Workbench(tmp_path_factory.mktemp("project")) as bench:
        bench.bootstrap()
        bench.must(
            *("cdk", "deploy", "foundation", "-c", f"models={','.join(SHIPPED_MODELS)}"),
            *("--output", SHIPPED, "--require-approval", "never"),
        )
        bench.must("slipway", "publish", MODEL)
        yield bench
