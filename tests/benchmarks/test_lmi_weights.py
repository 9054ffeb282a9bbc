"""The LMI benchmark's weights: the real s5cmd, tar and gzip on a local S3, with little data."""

import os
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing
from benchmarks.lmi import transfers, weights
from benchmarks.lmi.checkpoint import check_copy, make_checkpoint
from benchmarks.lmi.design import TRANSFERS, Content, Design, Way, quick
from benchmarks.lmi.object_store import BUCKET, ObjectStore
from benchmarks.lmi.transfers import client_variables, fetch
from benchmarks.lmi.weights import check_disk, measure_weights
from benchmarks.program import ROOT
from tests.support.waiting import eventually

# Files of some pieces each, one of which is longer than what is read at a time.
DESIGN = replace(quick(Design()), block_bytes=51_200, blocks_per_shard=3, shards=2)
VARIABLES = {"PATH": os.environ["PATH"]}
_END_SECONDS = 60


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "made"
    return make_checkpoint(DESIGN, Content.FLOAT32, folder)


@pytest.fixture(scope="module")
def store(checkpoint, tmp_path_factory):
    log = tmp_path_factory.mktemp("store") / "log"
    with ObjectStore((*checkpoint.files, checkpoint.archive), log, VARIABLES) as store:
        yield store


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "fetched" / "files"
    found.mkdir(parents=True)
    return found


# Python before 3.11.4 has no filters.
FILTER: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def content_of(stored) -> bytes:
    return b"".join(piece.file.read_bytes() for piece in stored.pieces)


def test_the_seed_makes_the_weights(checkpoint, tmp_path):
    again = make_checkpoint(DESIGN, checkpoint.content, tmp_path / "again")
    assert again.block.read_bytes() == checkpoint.block.read_bytes()
    assert checkpoint.size_bytes == DESIGN.weights_bytes + len('{"model_type": "t5"}\n')
    other = make_checkpoint(replace(DESIGN, seed=2), checkpoint.content, tmp_path / "other")
    assert other.block.read_bytes() != checkpoint.block.read_bytes()


def test_the_archive_is_one_that_python_reads_too(checkpoint, tmp_path):
    path = tmp_path / "model.tar.gz"
    path.write_bytes(content_of(checkpoint.archive))
    with tarfile.open(path) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "files", **FILTER)  # noqa: S202  # made by this test
    assert names == [
        "config.json", "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin",
    ]  # fmt: skip
    check_copy(checkpoint, tmp_path / "files", bytes_too=True)


@pytest.mark.parametrize("way", Way)
def test_every_way_brings_every_byte(way, checkpoint, store, folder):
    cost = fetch(way, checkpoint, store, folder, client_variables(store, folder.parent))
    check_copy(checkpoint, folder, bytes_too=True)
    assert cost.seconds > 0
    assert cost.processor_seconds > 0


def test_s5cmd_is_called_as_the_images_and_as_publishing_call_it(checkpoint, tmp_path):
    [program, *arguments] = transfers._sync_command(checkpoint, tmp_path)
    source = f"s3://{BUCKET}/{checkpoint.content}/files/*"
    assert program.endswith("s5cmd")
    assert arguments == ["--retry-count", "1", "sync", source, f"{tmp_path}/"]
    [first, *_] = transfers._copy_commands(checkpoint, tmp_path).splitlines()
    key = f"s3://{BUCKET}/{checkpoint.content}/files/config.json"
    assert first == f'cp --raw "{key}" "{tmp_path}/config.json"'


def test_a_copy_that_differs_is_found(checkpoint, store, folder):
    fetch(Way.SYNC, checkpoint, store, folder, client_variables(store, folder.parent))
    shard = folder / "pytorch_model-00002-of-00002.bin"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    check_copy(checkpoint, folder, bytes_too=False)
    with pytest.raises(BenchmarkError, match=f"{shard.name} did not arrive as it was stored"):
        check_copy(checkpoint, folder, bytes_too=True)
    shard.write_bytes(content[:-1])
    with pytest.raises(BenchmarkError, match=r"^what arrived is "):
        check_copy(checkpoint, folder, bytes_too=False)


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        (None, 200, (0, None)),
        ("bytes=0-0", 206, (0, 1)),
        # Over the end of a piece, and beyond the end of all.
        ("bytes=51190-51209", 206, (51190, 51210)),
        ("bytes=102400-999999999", 206, (102400, None)),
        ("bytes=102400-", 206, (102400, None)),
        ("bytes=-5", 416, None),
        ("bytes=999999999-", 416, None),
    ],
)
def test_the_store_gives_the_part_that_is_asked_for(asked, status, expected, checkpoint, store):
    stored = checkpoint.files[1]
    connection = HTTPConnection("127.0.0.1", store.port, timeout=10)
    headers = {} if asked is None else {"Range": asked}
    connection.request("GET", f"/{BUCKET}/{stored.key}", headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.status == status
    if expected is None:
        assert b"<Code>InvalidRange</Code>" in body
    else:
        first, end = expected
        assert body == content_of(stored)[first:end]


def test_an_object_that_is_not_there_is_reported(store):
    with pytest.raises(BenchmarkError, match="reading from the local S3 failed: nothing was answ"):
        store.raw_bytes_per_second("nothing", 2)


@pytest.mark.parametrize("way", [Way.STREAMED, Way.STORED])
def test_a_damaged_archive_ends_with_what_tar_says(way, checkpoint, folder, tmp_path):
    archive = checkpoint.archive
    first, *others = archive.pieces
    damaged = replace(checkpoint, archive=replace(archive, pieces=(*others, first)))
    with (
        ObjectStore((damaged.archive,), tmp_path / "log", VARIABLES) as store,
        pytest.raises(BenchmarkError, match=r"`tar` ended with exit code \d+\n.*tar"),
    ):
        fetch(way, damaged, store, folder, client_variables(store, tmp_path))


def test_a_prefix_that_is_empty_is_found_though_s5cmd_sync_ends_well(checkpoint, folder, tmp_path):
    with ObjectStore((), tmp_path / "log", VARIABLES) as store:
        fetch(Way.SYNC, checkpoint, store, folder, client_variables(store, tmp_path))
    with pytest.raises(BenchmarkError, match=r"^what arrived is \{\}, and what was stored is "):
        check_copy(checkpoint, folder, bytes_too=False)


def test_every_way_is_measured_in_every_round(tmp_path):
    said: list[str] = []
    found = measure_weights(DESIGN, tmp_path, said.append)
    order = [transfer for transfers in DESIGN.transfer_rounds() for transfer in transfers]
    assert [trial.cell for trial in found.trials] == order
    assert {trial.round for trial in found.trials} == {1, 2}
    assert set(found.store_bytes_per_second) == {1, 8}
    assert found.disk_bytes_per_second > 0
    # Random bytes do not compress, and weights do a little.
    ratios = {each: size / found.weights_bytes for each, size in found.archive_bytes.items()}
    assert 1.0 <= ratios[Content.RANDOM] < 1.01
    assert 0.85 < ratios[Content.FLOAT32] < 0.97
    assert len([line for line in said if " round " in line]) == 2 * len(TRANSFERS)
    assert not (tmp_path / "fetched").exists()


def test_what_brings_other_bytes_ends_the_benchmark_and_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "fetch", lambda *_: Timing(1.0, 1.0))
    first = DESIGN.transfer_rounds()[0][0]
    with pytest.raises(BenchmarkError, match=f"{first.key}: what arrived is {{}}, and what was"):
        measure_weights(DESIGN, tmp_path, lambda _: None)
    assert not (tmp_path / "fetched").exists()


def test_a_disk_that_is_too_small_is_named_with_what_to_do(tmp_path):
    huge = replace(DESIGN, blocks_per_shard=10**12)
    with pytest.raises(BenchmarkError) as caught:
        check_disk(huge, tmp_path / "not" / "there")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path} has ")
    assert f"the weights part needs {huge.disk_bytes / 1e9:.1f} GB" in message
    assert "name another disk with --folder" in message


def test_a_program_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("benchmarks.installed.program_path", lambda: "/nowhere")
    with pytest.raises(BenchmarkError) as caught:
        transfers.check_programs()
    assert str(caught.value) == (
        "`tar` is not installed, and the weights part extracts a tar.gz with it. On Debian and "
        "Ubuntu: `apt-get install tar`."
    )


@pytest.mark.size("all")
def test_a_run_that_is_stopped_leaves_nothing(tmp_path):
    folder, log, results = (tmp_path / name for name in ("folder", "log", "out"))
    options = ["--quick", "--part", "weights", "--folder", str(folder), "--output", str(results)]
    command = [sys.executable, "-m", "benchmarks.lmi", *options]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: "round 1" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        assert len(list(folder.iterdir())) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(_END_SECONDS) == 130, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert "Stopped." in log.read_text()
    assert list(folder.iterdir()) == []
    assert list(results.iterdir()) == []
