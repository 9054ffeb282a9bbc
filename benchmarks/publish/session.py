"""Makes the files, then measures the time and the memory of one command after the other."""

import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.execution import run_timed
from benchmarks.program import Say
from benchmarks.publish.design import CELLS, GIGABYTE, MEGABYTE, Cell, Design, Way, Work
from benchmarks.publish.projects import ENVIRONMENT, Source, settle
from benchmarks.publish.storage import Storage, find_program, find_s5cmd, opened_storage
from benchmarks.trials import Trial, carry_out, shuffled
from slipway.publishing.manifest import Manifest

_COMMAND_SECONDS = 1800.0
_SAMPLE_SECONDS = 0.05
_KIBIBYTE = 1024


@dataclass(frozen=True)
class Measured:
    """One run of a command."""

    seconds: float  # from starting its process until it ended
    peak_bytes: int  # resident, of all processes, sampled; a shared page counts twice


def run_measured(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Measured:
    samples, ended = [0], threading.Event()
    samplers: list[threading.Thread] = []

    def sample(process_id: int) -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            samples.append(tree_bytes(process_id))

    def follow(process_id: int) -> None:
        samplers.append(threading.Thread(target=sample, args=(process_id,)))
        samplers[0].start()

    try:
        timing, _ = run_timed(
            command, folder, environment, limit_seconds=_COMMAND_SECONDS, started=follow
        )
    finally:
        ended.set()
        for sampler in samplers:
            sampler.join()
    return Measured(timing.seconds, max(samples))


def tree_bytes(process_id: int) -> int:
    """Returns the resident memory of a process and its descendants; 0 once it has ended."""
    folder = Path("/proc") / str(process_id)
    try:
        status = (folder / "status").read_text("utf-8")
        children = [
            int(child)
            for thread in (folder / "task").iterdir()
            for child in (thread / "children").read_text("utf-8").split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    own = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
    own_bytes = int(own.split()[1]) * _KIBIBYTE if own is not None else 0
    return own_bytes + sum(map(tree_bytes, children))


_INSTALL = ": run `make .venv/.ready-dev` first"
# Free space beside the files.
_SPARE_BYTES = 2 * GIGABYTE


class _Measurement:
    def __init__(self, design: Design, folder: Path, storage: Storage) -> None:
        self._storage = storage
        self._sources = {
            work: Source(work, size, folder / work.model) for work, size in design.sizes.items()
        }
        self._variables = storage.variables(folder)
        self._prefix = Manifest(())

    def prepare(self) -> None:
        """Makes every project, and what the publishes that send nothing find."""
        for source in self._sources.values():
            source.make()
            self._storage.make_bucket(source.bucket)
        settle()
        unchanged, prefix = self._sources[Work.UNCHANGED], self._sources[Work.PREFIX]
        self._run(Cell(Work.UNCHANGED, Way.PUBLISH))
        self._check(unchanged)
        self._prefix = prefix.known_manifest()
        self._storage.put_sparse(prefix.bucket, self._prefix)

    def measure(self, cell: Cell) -> Measured:
        source = self._sources[cell.work]
        if cell.work.is_upload:
            self._storage.empty(source.bucket)
            source.forget()
        elif cell.work is Work.PREFIX:
            self._storage.remove_manifest(source.bucket, self._prefix)
        # What the trial before wrote reaches the disk now, and not while this one is timed.
        os.sync()
        measured = self._run(cell)
        self._check(source)
        if cell.work is Work.PREFIX and not self._storage.is_sparse(source.bucket):
            raise BenchmarkError(f"{cell}: files were sent, although all of them had arrived")
        return measured

    def _run(self, cell: Cell) -> Measured:
        source = self._sources[cell.work]
        target = f"s3://{source.bucket}/copied/"
        name, files = cell.work.model, str(source.files)
        commands = {
            Way.PUBLISH: ["slipway", "publish", name, "--env", ENVIRONMENT],
            Way.COPY: ["s5cmd", "cp", f"{files}/", target],
            Way.SYNC: ["aws", "s3", "sync", "--no-progress", files, target],
        }
        program, *arguments = commands[cell.way]
        found = find_s5cmd() if program == "s5cmd" else find_program(program, _INSTALL)
        return run_measured([found, *arguments], source.root, self._variables)

    def _check(self, source: Source) -> None:
        found = self._storage.sizes_bytes(source.bucket)
        wanted = [source.size.file_bytes] * source.size.file_count
        if found != wanted:
            raise BenchmarkError(
                f"{source.work}: the bucket has {len(found)} files of {sum(found)} bytes, and not "
                f"{len(wanted)} of {sum(wanted)}"
            )


def measure(
    design: Design, server: Path, folder: Path, say: Say
) -> tuple[Trial[Cell, Measured], ...]:
    free_bytes = shutil.disk_usage(folder).free
    needed_bytes = design.disk_bytes + _SPARE_BYTES
    if free_bytes < needed_bytes:
        raise BenchmarkError(
            f"{folder} has {free_bytes / GIGABYTE:.1f} GB free, and the files need "
            f"{needed_bytes / GIGABYTE:.1f} GB: name another folder with --folder"
        )
    storage_folder = folder / "storage"
    storage_folder.mkdir()
    with opened_storage(storage_folder, server) as storage:
        measurement = _Measurement(design, folder, storage)
        say("making the files")
        measurement.prepare()
        return carry_out(
            shuffled([CELLS] * design.trials, design.seed),
            measurement.measure,
            lambda cell, found: (
                f"{found.seconds:7.2f} s  {found.peak_bytes / MEGABYTE:5.0f} MB  {cell}"
            ),
            say,
        )
