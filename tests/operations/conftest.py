"""An account for tests of operations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.embedded_aws.listener import Listener
from slipway.embedded_aws.quotas import EndpointQuotas
from slipway.planning.plan import DeploymentPlan
from tests.support.accounts import SECRET_ACCESS_KEY, access_to, forget_accounts
from tests.support.imported_endpoints import ImportedPlan
from tests.support.plans import plan_for
from tests.support.projects import model_config


@pytest.fixture
def access() -> Iterator[Access]:
    """Clients of an empty account: moto's services, and SageMaker's quotas, which moto lacks."""
    server = Listener(port=0, secret_access_key=SECRET_ACCESS_KEY)
    server.mount("servicequotas", EndpointQuotas().api)
    server.start()
    # What moto knows is the process's: other tests' stacks too.
    forget_accounts()
    yield access_to(server.connection.url)
    server.stop()


@pytest.fixture
def plan() -> DeploymentPlan:
    return plan_for(model_config())


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any) -> ImportedPlan:
    """Imports the endpoint of a plan."""
    return ImportedPlan(tmp_path, monkeypatch, slipway_command)
