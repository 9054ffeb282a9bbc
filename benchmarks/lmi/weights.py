"""The weights part: makes the checkpoints, serves them, and fetches them round by round."""

import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing
from benchmarks.lmi.design import Content, Design, Transfer
from benchmarks.lmi.transfers import BUCKET, Checkpoint, check_copy, fetch, make_checkpoint
from benchmarks.program import Say
from benchmarks.publish.storage import Storage, find_server, opened_storage
from benchmarks.trials import Trial, carry_out

RAW_CONNECTIONS = (1, 8)
_WRITTEN_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class WeightsSession:
    trials: tuple[Trial[Transfer, Timing], ...]
    store_bytes_per_second: Mapping[int, float]
    """For a client that throws the data away, by the number of connections."""
    disk_bytes_per_second: float  # of one writer, with its data on the disk at the end
    weights_bytes: int
    archive_bytes: Mapping[Content, int]


def check_disk(design: Design, folder: Path) -> None:
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
    disk = _write_to_the_disk(folder / "written", design)
    say(f"the disk takes {disk / 1e9:.2f} GB/s")
    storage_folder = folder / "storage"
    storage_folder.mkdir()
    with opened_storage(storage_folder, find_server(os.environ)) as store:
        store.make_bucket(BUCKET)
        say(f"making {design.weights_bytes / 1e9:g} GB of weights, from blocks")
        checkpoints = {
            content: make_checkpoint(design, content, store.folder_of(BUCKET))
            for content in Content
        }
        raw = {
            connections: _raw_bytes_per_second(store, checkpoints[Content.RANDOM], connections)
            for connections in RAW_CONNECTIONS
        }
        rates = ", ".join(f"{rate / 1e9:.2f} GB/s x{number}" for number, rate in raw.items())
        say(f"the local S3 gives {rates}")
        client = store.variables(folder)
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
            archive_bytes={
                content: found.archive.stat().st_size for content, found in checkpoints.items()
            },
        )


def _raw_bytes_per_second(store: Storage, checkpoint: Checkpoint, connections: int) -> float:
    """Reads an archive over that many connections at once and throws it away."""
    counts: list[int] = []
    started_at = time.perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        for reader in [
            pool.submit(
                store.read,
                BUCKET,
                checkpoint.archive_key,
                lambda part: counts.append(len(part)),
            )
            for _ in range(connections)
        ]:
            reader.result()
    return sum(counts) / (time.perf_counter() - started_at)


def _fetch_and_check(
    transfer: Transfer,
    checkpoint: Checkpoint,
    store: Storage,
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


def _write_to_the_disk(path: Path, design: Design) -> float:
    """Writes half of the weights and waits until the disk has them; returns bytes per second."""
    content = os.urandom(design.block_bytes)
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
