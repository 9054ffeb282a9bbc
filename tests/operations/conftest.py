"""An account for tests of operations."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from slipway.access import Access
from slipway.embedded_aws.listener import Listener
from slipway.embedded_aws.quotas import EndpointQuotas
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.assembly import plan_stack
from tests.support.accounts import SECRET_ACCESS_KEY, access_to, forget_accounts
from tests.support.imported_endpoints import ImportedPlan
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, model_config
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.synth.assemblies import new_app

Rendered = Callable[[Mapping[str, DeploymentPlan]], dict[str, str]]


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


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    """An account for the tests of a file."""
    with slipway_stack(tmp_path_factory.mktemp("account"), time_scale=0.005) as stack:
        yield stack


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder for a project, beside that of the account."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """Gives the templates of plans, as texts."""

    def templates(plans: Mapping[str, DeploymentPlan]) -> dict[str, str]:
        app = new_app(tmp_path_factory.mktemp("cdk.out"))
        target = cdk.Environment(account=LOCAL.account, region=LOCAL.region)
        for name, plan in plans.items():
            plan_stack(app, name, plan=plan, env=target)
        folder = Path(app.synth().directory)
        return {name: (folder / f"{name}.template.json").read_text("utf-8") for name in plans}

    return templates


@pytest.fixture
def plan() -> DeploymentPlan:
    return plan_for(model_config())


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any) -> ImportedPlan:
    """Imports the endpoint of a plan."""
    return ImportedPlan(tmp_path, monkeypatch, slipway_command)
