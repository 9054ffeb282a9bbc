"""Makes the files, then carries out the design: one measurement after the other."""

import os
import shutil
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.program import Say
from benchmarks.publish.design import CELLS, GIGABYTE, MEGABYTE, Cell, Design, Way, Work
from benchmarks.publish.projects import ENVIRONMENT, Source, settle
from benchmarks.publish.storage import Storage, find_program, find_s5cmd, opened_storage
from benchmarks.publish.tree import Measured, run_measured
from benchmarks.trials import Trial, carry_out, shuffled
from slipway.publishing.manifest import Manifest

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
