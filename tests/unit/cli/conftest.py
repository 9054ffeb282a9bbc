"""What tests of commands share."""

import pytest

from tests.support.described_endpoints import REGION, FakeAws
from tests.support.projects import ENVIRONMENTS, write_project


@pytest.fixture
def import_endpoint(tmp_path, monkeypatch, slipway_command):
    """Imports an endpoint into a new project whose only environment is production."""
    environments = "production:" + ENVIRONMENTS.partition("production:")[2]
    monkeypatch.chdir(write_project(tmp_path, {}, environments=environments))

    def command(given, *options, refused=None, name="chat"):
        aws = FakeAws(given, refused)
        monkeypatch.setattr(
            "slipway.access.open_shell_access", lambda region: (aws, region or REGION)
        )
        endpoint = given["DescribeEndpoint"]["EndpointName"]
        return slipway_command("import", name, "--endpoint", endpoint, *options)

    return command
