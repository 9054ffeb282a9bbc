"""The end of the foundation is the end of its builds."""

from pathlib import Path

import pytest

from tests.publishing.remote.conftest import STACK, Remote
from tests.support.stacks import Stacks
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")


def test_destroying_the_foundation_stops_a_running_build(
    remote: Remote, stacks: Stacks, tmp_path: Path
) -> None:
    remote.put_weights(f"gate {tmp_path / 'never'}")
    remote.leave()
    (build,) = remote.builds()
    assert build["buildStatus"] == "IN_PROGRESS"
    assert stacks.delete(STACK) == "DELETE_COMPLETE"
    client = remote.codebuild
    eventually(
        lambda: client.batch_get_builds(ids=[build["id"]])["builds"][0]["buildStatus"] == "STOPPED"
    )
    assert client.list_projects()["projects"] == []
