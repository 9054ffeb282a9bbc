"""What tests of imports share."""

import contextlib

import pytest
import yaml

from tests.publishing.hub_stand_in import Hub, serving
from tests.support.described_endpoints import REGION, FakeAws
from tests.support.projects import ENVIRONMENTS, write_project

# What the options have to say where no file does.
NETWORK = ("--family", "llama", "--parameters", "6738415616")


@pytest.fixture(autouse=True)
def no_hub(monkeypatch):
    """Keeps tests from the real Hub: nothing listens on that port."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


@pytest.fixture
def serve_hub(monkeypatch):
    """Serves files on a stand-in of the Hub, without a token."""
    with contextlib.ExitStack() as stack:

        def served(files):
            hub = stack.enter_context(serving(Hub(dict(files))))
            monkeypatch.setenv("HF_ENDPOINT", hub.url)
            monkeypatch.delenv("HF_TOKEN", raising=False)
            return hub

        yield served


@pytest.fixture
def import_endpoint(tmp_path, monkeypatch, slipway_command):
    """Imports an endpoint into a new project whose only environment is production."""
    environments = "production:" + ENVIRONMENTS.partition("production:")[2]
    monkeypatch.chdir(write_project(tmp_path, {}, environments=environments))

    def command(given, *options, refused=None, name="chat", s3=None):
        aws = FakeAws(given, refused, s3)
        monkeypatch.setattr(
            "slipway.importing.live_endpoint.open_shell_access",
            lambda region: (aws, region or REGION),
        )
        endpoint = given["DescribeEndpoint"]["EndpointName"]
        return slipway_command("import", name, "--endpoint", endpoint, *options)

    return command


@pytest.fixture
def config(tmp_path):
    """The file that an import writes."""
    return tmp_path / "model_configs" / "chat.yaml"


@pytest.fixture
def text(config):
    return lambda: config.read_text("utf-8")


@pytest.fixture
def written(text):
    return lambda: yaml.safe_load(text())


@pytest.fixture
def accepted(run):
    """Runs the command of a file of tests, which succeeds; returns what it prints."""

    def run_accepted(*arguments, **more):
        code, output, errors = run(*arguments, **more)
        assert (code, errors) == (0, "")
        return output

    return run_accepted


@pytest.fixture
def report(import_endpoint):
    """Imports an endpoint that a config can say; returns the report."""

    def reported(given, *options, **more):
        code, output, errors = import_endpoint(given, *NETWORK, *options, **more)
        assert (code, errors) == (0, "")
        return output

    return reported
