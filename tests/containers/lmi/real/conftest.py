"""The real DJL Serving: that of DJL_SERVING_HOME, or what `make djl-serving` built.

A test that takes `home` runs on every version that DJL_SERVING_HOME names; without it on an old one
and the newest. `@pytest.mark.djl_version(at_least=..., at_most=...)` leaves versions out.
"""

import contextlib
import os

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from tests.containers.lmi.real import servers
from tests.support.accounts import embedded_aws


def pytest_generate_tests(metafunc):
    if "home" not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers("djl_version"))
    homes = [
        home for home in servers.homes() if all(home.is_within(**mark.kwargs) for mark in marks)
    ]
    metafunc.parametrize(
        "home", homes or [None], ids=lambda home: home and home.version, scope="session"
    )


def pytest_collection_modifyitems(config, items):
    """Leaves out tests that are about none of the versions that DJL_SERVING_HOME names."""
    others = [item for item in items if is_about_another(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def is_about_another(item):
    if not isinstance(item, pytest.Function) or "home" not in item.fixturenames:
        return False
    home = item.callspec.params["home"]
    if home is None:
        # Without that variable it is the group that is missing.
        return bool(os.environ.get("DJL_SERVING_HOME"))
    return not all(home.is_within(**mark.kwargs) for mark in item.iter_markers("djl_version"))


@pytest.fixture(scope="module")
def aws_url(tmp_path_factory):
    with embedded_aws(tmp_path_factory.mktemp("aws")) as aws:
        clients = LoopbackClients(aws.connection)
        servers.put_weights(clients.client("s3", "us-east-1"))
        yield aws.connection.url
        clients.close()


@pytest.fixture(scope="module")
def serve_over_stand_ins(home, aws_url, tmp_path_factory):
    with contextlib.ExitStack() as stack:

        def serve(library, **serving):
            files = servers.package_for(servers.config_for(home, library, **serving))
            return stack.enter_context(
                servers.started(
                    home,
                    tmp_path_factory.mktemp("djl"),
                    files,
                    aws_url=aws_url,
                    PYTHONPATH=servers.stand_in_path(library),
                )
            ).wait_until_ready()

        yield serve


@pytest.fixture
def start(home, tmp_path_factory):
    with contextlib.ExitStack() as stack:

        def begin(files, **declared):
            directory = tmp_path_factory.mktemp("djl")
            return stack.enter_context(servers.started(home, directory, files, **declared))

        yield begin
