"""Publishing 50,000 small files: by the real command, in bounded memory."""

import os
from pathlib import Path

import pytest

from benchmarks.publish.design import Size, Work
from benchmarks.publish.projects import ENVIRONMENT, Source, settle
from benchmarks.publish.session import run_measured
from benchmarks.publish.storage import find_server, opened_storage
from tests.support.starts import count_start

COUNT, SIZE_BYTES = 50_000, 200
MEGABYTE = 1_000_000


@pytest.mark.versitygw
@pytest.mark.size("deep")
@pytest.mark.timeout(1800)
def test_the_memory_of_slipway_and_s5cmd_together_is_bounded(tmp_path: Path) -> None:
    count_start("server")
    count_start("slipway")
    source = Source(Work.SMALL, Size(COUNT, SIZE_BYTES), tmp_path / "project")
    source.make()
    settle()
    folder = tmp_path / "storage"
    folder.mkdir()
    command = ["slipway", "publish", Work.SMALL.model, "--env", ENVIRONMENT]
    with opened_storage(folder, find_server(os.environ)) as storage:
        storage.make_bucket(source.bucket)
        variables = storage.variables(tmp_path)
        sent = run_measured(command, source.root, variables)
        assert storage.sizes_bytes(source.bucket) == [SIZE_BYTES] * COUNT
        again = run_measured(command, source.root, variables)
    assert sent.peak_bytes < 300 * MEGABYTE
    assert again.peak_bytes < 300 * MEGABYTE
