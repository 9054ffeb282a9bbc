"""The benchmark of publishing: what is measured, the figures, and the page."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Verdict
from benchmarks.machine import Machine, program_path
from benchmarks.publish import __main__ as program
from benchmarks.publish.design import CELLS, Cell, Size, Way, Work, full_design, quick
from benchmarks.publish.projects import Source
from benchmarks.publish.report import as_json, as_markdown
from benchmarks.publish.session import Session, measure
from benchmarks.publish.storage import find_server
from benchmarks.publish.summary import summarize
from benchmarks.publish.tree import Measured, run_measured, tree_bytes
from benchmarks.report import Context
from benchmarks.trials import Trial
from tests.support.starts import count_start

LARGE, SMALL, PREFIX = Size(20, 200_000_000), Size(10_000, 20_000), Size(500, 700_000_000)
DESIGN = full_design(large=LARGE, small=SMALL, prefix=PREFIX, trials=5, seed=1)
CONTEXT = Context(
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ended_at=datetime(2026, 1, 2, 3, 11, 5, tzinfo=UTC),
    commit=None,
    machine=Machine("Linux x86_64", "A processor", 2, 25_300_000_000, 0.1, {"s5cmd": "2.3.0"}),
)
MEBIBYTE = 1 << 20


def session(publish: float, unchanged: float) -> Session:
    """Copying takes 10 seconds and syncing 20."""
    seconds = {
        **{Cell(work, Way.COPY): 10.0 for work in (Work.LARGE, Work.SMALL)},
        **{Cell(work, Way.SYNC): 20.0 for work in (Work.LARGE, Work.SMALL)},
        **{Cell(work, Way.PUBLISH): publish for work in (Work.LARGE, Work.SMALL)},
        **{Cell(work, Way.PUBLISH): unchanged for work in (Work.UNCHANGED, Work.PREFIX)},
    }
    return Session(
        tuple(
            Trial(cell, number, Measured(seconds[cell], number * 1_000_000))
            for number, cells in enumerate(DESIGN.rounds(), start=1)
            for cell in cells
        )
    )


def test_the_defaults_are_the_goals_sizes() -> None:
    found = program._design(program.parse([]))
    assert found == DESIGN
    assert (LARGE.total_bytes, SMALL.total_bytes, PREFIX.total_bytes) == (
        4_000_000_000, 200_000_000, 350_000_000_000,
    )  # fmt: skip
    # The prefix takes no space.
    assert found.disk_bytes == 2 * (4_000_000_000 + 2 * 200_000_000)
    assert all(set(cells) == set(CELLS) for cells in found.rounds())
    assert len(found.rounds()) == 5


def test_sizes_are_options() -> None:
    found = program._design(program.parse(["--small-files", "3", "--large-bytes", "7"]))
    assert (found.sizes[Work.SMALL], found.sizes[Work.LARGE]) == (Size(3, 20_000), Size(20, 7))
    assert found.sizes[Work.UNCHANGED] == found.sizes[Work.SMALL]


@pytest.mark.parametrize(
    ("publish", "unchanged", "verdicts"),
    [
        (10.0, 0.9, [Verdict.MET, Verdict.MET, Verdict.MET]),
        (10.5, 1.1, [Verdict.MET, Verdict.MISSED, Verdict.MISSED]),
        (12.0, 1.0, [Verdict.MISSED, Verdict.MISSED, Verdict.MET]),
    ],
)
def test_a_verdict_compares_rates_and_seconds(
    publish: float, unchanged: float, verdicts: list[Verdict]
) -> None:
    goals = summarize(DESIGN, session(publish, unchanged)).goals
    found = {(goal.work, goal.baseline): goal.verdict for goal in goals}
    to_copy, to_sync, seconds = verdicts
    assert found == {
        **{(work, Way.COPY): to_copy for work in (Work.LARGE, Work.SMALL)},
        **{(work, Way.SYNC): to_sync for work in (Work.LARGE, Work.SMALL)},
        **{(work, None): seconds for work in (Work.UNCHANGED, Work.PREFIX)},
    }


def test_the_page_has_the_goals_and_the_document_every_trial() -> None:
    summary = summarize(DESIGN, session(10.0, 1.1))
    page = as_markdown(DESIGN, summary, CONTEXT)
    assert "**4 of 6 goals met.** Others: 2 not met." in page
    assert (
        "| small files: 10,000 of 20 kB | rate / `aws s3 sync` | 2.00 (2.00 to 2.00) | "
        "at least 2 | met |"
    ) in page
    assert (
        "| nothing changed: 10,000 of 20 kB | seconds | 1.10 (1.10 to 1.10) | at most 1 |" in page
    )
    assert (
        "| large files: 20 of 200 MB | `slipway publish` | 10.0 | 10.0 to 10.0 | 400 | 5.00 |"
    ) in page
    document = json.loads(json.dumps(as_json(DESIGN, summary, CONTEXT)))
    assert [len(cell["trials"]) for cell in document["cells"]] == [5] * len(CELLS)
    assert document["design"]["sizes"]["large prefix"] == {
        "file_count": 500, "file_bytes": 700_000_000,
    }  # fmt: skip


def test_the_memory_is_that_of_the_whole_tree(tmp_path: Path) -> None:
    count_start("python")
    child = f"import sys; held = bytearray({64 * MEBIBYTE}); print(flush=True); sys.stdin.read()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert tree_bytes(process.pid) > 64 * MEBIBYTE
        process.communicate(b"")
    assert tree_bytes(process.pid) == 0


def test_a_program_that_fails_ends_the_benchmark_with_its_output(tmp_path: Path) -> None:
    count_start("sh")
    command = ["/bin/sh", "-c", "echo no bucket; exit 3"]
    with pytest.raises(BenchmarkError, match=r"ended with exit code 3\nno bucket"):
        run_measured(command, tmp_path, {"PATH": program_path()}, tmp_path / "log")


def test_the_prefix_takes_no_space_and_no_reading(tmp_path: Path) -> None:
    source = Source(Work.PREFIX, Size(3, 700_000_000), tmp_path / "prefix")
    source.make()
    assert sum(path.stat().st_blocks for path in source.files.iterdir()) == 0
    manifest = source.known_manifest()
    assert manifest.size_bytes == 2_100_000_000
    assert source.known_manifest() == manifest


def test_a_disk_that_is_too_small_is_told_before_anything_is_made(tmp_path: Path) -> None:
    design = full_design(large=Size(1, 10**15), small=SMALL, prefix=PREFIX, trials=1, seed=1)
    with pytest.raises(BenchmarkError, match=r"the files need 2000002\.\d GB: name another folder"):
        measure(design, tmp_path / "server", tmp_path, lambda _text: None)
    assert list(tmp_path.iterdir()) == []


def test_without_the_server_the_command_that_builds_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="run `make versitygw` first"):
        find_server({"HOME": str(tmp_path)})


@pytest.mark.versitygw
@pytest.mark.size("all")
@pytest.mark.timeout(300)
def test_a_quick_run_measures_every_program(tmp_path: Path) -> None:
    count_start("server")
    output, folder = tmp_path / "results", tmp_path / "files"
    status = program.main(["--quick", "--output", str(output), "--folder", str(folder)])
    assert status == 0
    document = json.loads((output / "publish.json").read_text("utf-8"))
    assert document["design"]["sizes"]["small files"] == {"file_count": 20, "file_bytes": 20_000}
    found = {(cell["work"], cell["way"]): cell for cell in document["cells"]}
    assert set(found) == {(str(cell.work), str(cell.way)) for cell in CELLS}
    assert {len(cell["trials"]) for cell in found.values()} == {quick(DESIGN).trials}
    assert found["small files", "slipway publish"]["peak_bytes"] > 10 * MEBIBYTE
    # Nothing is left of the files.
    assert list(folder.iterdir()) == []
    assert "A quick run" in (output / "publish.md").read_text("utf-8")
