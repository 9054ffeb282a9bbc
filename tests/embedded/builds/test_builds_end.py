"""The ends of builds that need a server of their own: a time limit, and the server's own end."""

from pathlib import Path

import pytest

from tests.embedded.builds.conftest import Account, context, phases
from tests.support.accounts import embedded_aws
from tests.support.processes import is_running
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")


def test_a_build_that_takes_too_long_is_timed_out(tmp_path: Path) -> None:
    # Five minutes, the shortest limit, are over after 3 seconds.
    with embedded_aws(tmp_path, time_scale=0.01) as server:
        account = Account(server.connection.url)
        account.prepare()
        build = account.done({"build": ["echo begun", "sleep 300"]})
    assert build["buildStatus"] == "TIMED_OUT"
    assert phases(build)["BUILD"] == "TIMED_OUT"
    assert context(build, "BUILD") == ("BUILD_TIMED_OUT", "Build has timed out.")


def test_the_end_of_the_server_ends_its_builds(tmp_path: Path) -> None:
    with embedded_aws(tmp_path) as server:
        account = Account(server.connection.url)
        account.prepare()
        identifier = account.start({"build": ["sleep 300 & echo $! ; wait"]})
        eventually(lambda: account.output(account.describe(identifier)) != [])
        (child,) = account.output(account.describe(identifier))
    eventually(lambda: not is_running(int(child)))
    assert list((tmp_path / "builds").glob("*")) == []
