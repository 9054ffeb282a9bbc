"""The weights part: makes the checkpoints, serves them, and fetches them round by round."""

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing
from benchmarks.lmi.checkpoint import Checkpoint, check_copy, make_checkpoint
from benchmarks.lmi.design import Content, Design, Transfer
from benchmarks.lmi.object_store import ObjectStore
from benchmarks.lmi.transfers import client_variables, fetch
from benchmarks.program import Say
from benchmarks.trials import Trial, carry_out

RAW_CONNECTIONS = (1, 8)
_WRITTEN_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class WeightsSession:
    """The measurements of the weights part."""

    trials: tuple[Trial[Transfer, Timing], ...]
    store_bytes_per_second: Mapping[int, float]
    """For a client that throws the data away, by the number of connections."""
    disk_bytes_per_second: float
    """Of one writer, with its data on the disk at the end."""
    weights_bytes: int
    archive_bytes: Mapping[Content, int]


def check_disk(design: Design, folder: Path) -> None:
    """Checks that the disk has room for the fetched files."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < design.disk_bytes:
        raise BenchmarkError(
            f"{folder} has {free / 1e9:.1f} GB free, and the weights part needs "
            f"{design.disk_bytes / 1e9:.1f} GB there. Free some, name another disk with "
            "--folder, or measure the other part alone with --part serving."
        )


def measure_weights(design: Design, folder: Path, say: Say) -> WeightsSession:
    """Carries out the rounds."""
    say(f"making {design.weights_bytes / 1e9:g} GB of weights, from blocks")
    checkpoints = {
        content: make_checkpoint(design, content, folder / str(content)) for content in Content
    }
    objects = [each for found in checkpoints.values() for each in (*found.files, found.archive)]
    disk = _write_to_the_disk(folder / "written", checkpoints[Content.RANDOM].block, design)
    say(f"the disk takes {disk / 1e9:.2f} GB/s")
    variables = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONUNBUFFERED": "1"}
    with ObjectStore(objects, folder / "store.log", variables) as store:
        largest = checkpoints[Content.RANDOM].archive.key
        raw = {
            connections: store.raw_bytes_per_second(largest, connections)
            for connections in RAW_CONNECTIONS
        }
        rates = ", ".join(f"{rate / 1e9:.2f} GB/s x{number}" for number, rate in raw.items())
        say(f"the local S3 gives {rates}")
        client = client_variables(store, folder)
        compared: set[Transfer] = set()

        def measure(transfer: Transfer) -> Timing:
            bytes_too = transfer not in compared
            compared.add(transfer)
            checkpoint = checkpoints[transfer.content]
            return _fetch_and_check(
                transfer, checkpoint, store, folder / "fetched", client, bytes_too=bytes_too
            )

        trials = carry_out(
            design.transfer_rounds(),
            measure,
            lambda transfer, timing: f"{timing.seconds:5.2f} s  {transfer.key}",
            say,
        )
    return WeightsSession(
        trials=trials,
        store_bytes_per_second=raw,
        disk_bytes_per_second=disk,
        weights_bytes=checkpoints[Content.RANDOM].size_bytes,
        archive_bytes={content: found.archive.size_bytes for content, found in checkpoints.items()},
    )


def _fetch_and_check(
    transfer: Transfer,
    checkpoint: Checkpoint,
    store: ObjectStore,
    parent: Path,
    variables: Mapping[str, str],
    *,
    bytes_too: bool,
) -> Timing:
    folder = parent / "files"
    folder.mkdir(parents=True)
    # Earlier data may still be on its way to the disk.
    os.sync()
    try:
        timing = fetch(transfer.way, checkpoint, store, folder, variables)
        check_copy(checkpoint, folder, bytes_too=bytes_too)
    except BenchmarkError as error:
        raise BenchmarkError(f"{transfer.key}: {error}") from None
    finally:
        shutil.rmtree(parent)
    return timing


def _write_to_the_disk(path: Path, block: Path, design: Design) -> float:
    """Writes half of the weights and waits until the disk has them; returns bytes per second."""
    content = block.read_bytes()
    blocks = design.blocks_per_shard * design.shards // 2
    started_at = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(blocks):
            for at in range(0, len(content), _WRITTEN_BYTES):
                file.write(content[at : at + _WRITTEN_BYTES])
        os.fsync(file.fileno())
    seconds = time.perf_counter() - started_at
    path.unlink()
    return blocks * len(content) / seconds
