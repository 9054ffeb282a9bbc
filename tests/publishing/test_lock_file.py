"""Publishes of one model to several environments, whose entries are in one lock file."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from slipway.planning.lock import LockedArtifact, LockedPart, inputs_digest
from slipway.project import Project
from slipway.publishing.publish import Made, record
from tests.publishing.promotions import LMI, NO_ISOLATION, WEIGHTS
from tests.support.projects import PRODUCTION, config_text, write_project

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


def test_no_entry_is_lost_of_publishes_at_once(tmp_path: Path) -> None:
    text = config_text("tiny", LMI, WEIGHTS, NO_ISOLATION)
    write_project(tmp_path, {"tiny": text})
    names = ("blue", "green")
    context = get_context("spawn")
    # All begin once all are there.
    begin = context.Barrier(len(names)).wait
    with ProcessPoolExecutor(len(names), mp_context=context, initializer=begin) as pool:
        list(pool.map(publish_often, [tmp_path] * len(names), names))
    assert set(Project(tmp_path).lock("tiny").environments or {}) == {
        f"{name}-{number}" for name in names for number in range(PUBLISHES)
    }
