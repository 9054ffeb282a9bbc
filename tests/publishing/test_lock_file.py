"""Publishes of one model to several environments, whose entries are in one lock file."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from slipway.planning.lock import LockedArtifact, LockedPart, inputs_digest
from slipway.project import Project
from slipway.publishing.publish import Made, record
from tests.support.projects import PRODUCTION

PUBLISHES = 100


def publish_often(root: Path, name: str) -> None:
    """Records the artifacts of many environments."""
    project = Project(root)
    deployment = project.deployment("tiny", PRODUCTION)
    for number in range(PUBLISHES):
        environment = PRODUCTION.model_copy(update={"name": f"{name}-{number}"})
        digest = f"{number:064x}"
        part = LockedPart(digest=digest, size_bytes=1, file_count=1, source=name, target="any")
        locked = LockedArtifact(inputs_digest=inputs_digest(deployment), weights=part, code=part)
        there = replace(deployment, environment=environment)
        record(project, there, Made(locked, 0))


@pytest.mark.usefixtures("checkpoint")
def test_no_entry_is_lost_of_publishes_at_once(root: Path) -> None:
    names = ("blue", "green")
    context = get_context("spawn")
    # All begin once all are there.
    begin = context.Barrier(len(names)).wait
    with ProcessPoolExecutor(len(names), mp_context=context, initializer=begin) as pool:
        list(pool.map(publish_often, [root] * len(names), names))
    assert set(Project(root).lock("tiny").environments or {}) == {
        f"{name}-{number}" for name in names for number in range(PUBLISHES)
    }
