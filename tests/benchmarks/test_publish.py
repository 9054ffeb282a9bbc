"""The benchmark of publishing: what is measured, and the verdicts."""

import json
import subprocess
import sys

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Verdict
from benchmarks.machine import program_path
from benchmarks.publish.__main__ import BENCHMARK, design_of
from benchmarks.publish.design import CELLS, Size, Way, Work
from benchmarks.publish.projects import Source
from benchmarks.publish.report import result
from benchmarks.publish.session import Measured, measure, run_measured, tree_bytes
from benchmarks.trials import Trial
from tests.benchmarks.results import committed, document_of, shape
from tests.support.starts import count_start

MEBIBYTE = 1 << 20


def document(publish, unchanged):
    """The document of trials in which copying takes 10 s and syncing 20 s."""

    def seconds(cell):
        ours = publish if cell.work.is_upload else unchanged
        return {Way.COPY: 10.0, Way.SYNC: 20.0, Way.PUBLISH: ours}[cell.way]

    trials = [
        Trial(cell, number, Measured(seconds(cell), number * 1_000_000))
        for number in range(1, 6)
        for cell in CELLS
    ]
    return document_of(result(trials, 1))


def test_the_defaults_are_the_goals_sizes():
    found = design_of(BENCHMARK.parse([]))
    assert {str(work): size.total_bytes for work, size in found.sizes.items()} == {
        "large files": 4_000_000_000,
        "small files": 200_000_000,
        "nothing changed": 200_000_000,
        "large prefix": 350_000_000_000,
    }
    # The prefix takes no space.
    assert found.disk_bytes == 2 * (4_000_000_000 + 2 * 200_000_000)


def test_sizes_are_options():
    found = design_of(BENCHMARK.parse(["--small-files", "3", "--large-bytes", "7"]))
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
def test_a_verdict_compares_rates_and_seconds(publish, unchanged, verdicts):
    goals = document(publish, unchanged)["goals"]
    found = {goal["goal"]: goal["verdict"] for goal in goals}
    to_copy, to_sync, seconds = verdicts
    assert found == {
        **{f"{work}: rate, in times of `s5cmd cp`": to_copy for work in (Work.LARGE, Work.SMALL)},
        **{
            f"{work}: rate, in times of `aws s3 sync`": to_sync for work in (Work.LARGE, Work.SMALL)
        },
        **{str(work): seconds for work in (Work.UNCHANGED, Work.PREFIX)},
    }


def test_the_document_has_every_trial_in_the_committed_form():
    found, kept = document(10.0, 1.1), committed("publish")
    assert shape(found["cells"]) == shape(kept["cells"])
    assert [goal.keys() for goal in found["goals"]] == [goal.keys() for goal in kept["goals"]]
    assert [len(cell["trials"]) for cell in found["cells"]] == [5] * len(CELLS)
    assert found["cells"][0]["readings"]["seconds"] == {"median": 10.0, "low": 10.0, "high": 10.0}
    assert found["cells"][0]["readings"]["peak_bytes"]["high"] == 5_000_000


def test_the_memory_is_that_of_the_whole_tree(tmp_path):
    count_start("python")
    child = f"import sys; held = bytearray({64 * MEBIBYTE}); print(flush=True); sys.stdin.read()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        assert tree_bytes(process.pid) > 64 * MEBIBYTE
        process.communicate(b"")
    assert tree_bytes(process.pid) == 0


def test_a_program_that_fails_ends_the_benchmark_with_its_output(tmp_path):
    count_start("sh")
    command = ["/bin/sh", "-c", "echo no bucket; exit 3"]
    with pytest.raises(BenchmarkError, match=r"ended with exit code 3\nno bucket"):
        run_measured(command, tmp_path, {"PATH": program_path()})


def test_the_prefix_takes_no_space_and_no_reading(tmp_path):
    source = Source(Work.PREFIX, Size(3, 700_000_000), tmp_path / "prefix")
    source.make()
    assert sum(path.stat().st_blocks for path in source.files.iterdir()) == 0
    manifest = source.known_manifest()
    assert manifest.size_bytes == 2_100_000_000
    assert source.known_manifest() == manifest


def test_a_disk_that_is_too_small_is_told_before_anything_is_made(tmp_path):
    design = design_of(BENCHMARK.parse(["--large-files", "1", "--large-bytes", str(10**15)]))
    with pytest.raises(BenchmarkError, match=r"the files need 2000002\.\d GB: name another folder"):
        measure(design, tmp_path / "server", tmp_path, lambda _text: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.versitygw
@pytest.mark.size("all")
@pytest.mark.timeout(300)
def test_a_quick_run_measures_every_program(tmp_path):
    count_start("server")
    output, folder = tmp_path / "results", tmp_path / "files"
    status = BENCHMARK.main(["--quick", "--output", str(output), "--folder", str(folder)])
    assert status == 0
    document = json.loads((output / "publish.json").read_text("utf-8"))
    assert document["design"]["sizes"]["small files"] == {"file_count": 20, "file_bytes": 20_000}
    found = {(cell["work"], cell["way"]): cell for cell in document["cells"]}
    assert set(found) == {(str(cell.work), str(cell.way)) for cell in CELLS}
    assert {len(cell["trials"]) for cell in found.values()} == {2}
    assert found["small files", "slipway publish"]["readings"]["peak_bytes"]["high"] > 10 * MEBIBYTE
    # Nothing is left of the files.
    assert list(folder.iterdir()) == []
    assert "A quick run" in (output / "publish.md").read_text("utf-8")
