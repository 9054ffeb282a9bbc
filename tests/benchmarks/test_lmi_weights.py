"""The LMI benchmark's weights: the real s5cmd, tar and gzip on a local S3, with little data."""

import os
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from http.client import HTTPConnection

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
DESIGN = replace(
    quick(Design()),
    block_bytes=51_200,
    blocks_per_shard=3,
    shards=2,
)
VARIABLES = {"PATH": os.environ["PATH"]}
_END_SECONDS = 60


def nothing_said(_text: str) -> None:
    pass


@pytest.fixture(scope="module", params=Content)
def checkpoint(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "made"
    return make_checkpoint(DESIGN, request.param, folder)


@pytest.fixture(scope="module")
def store(checkpoint, tmp_path_factory):
    log = tmp_path_factory.mktemp("store") / "log"
    with ObjectStore((*checkpoint.files, checkpoint.archive), log, VARIABLES) as store:
        yield store


def content_of(stored) -> bytes:
    return b"".join(piece.file.read_bytes() for piece in stored.pieces)


def test_the_same_seed_makes_the_same_weights(checkpoint, tmp_path):
    again = make_checkpoint(DESIGN, checkpoint.content, tmp_path / "again")
    assert again.block.read_bytes() == checkpoint.block.read_bytes()
    assert checkpoint.size_bytes == DESIGN.weights_bytes + len('{"model_type": "t5"}\n')
    other = make_checkpoint(replace(DESIGN, seed=2), checkpoint.content, tmp_path / "other")
    assert other.block.read_bytes() != checkpoint.block.read_bytes()


def test_random_bytes_do_not_compress_and_weights_do_a_little(tmp_path):
    ratios = {}
    for content in Content:
        found = make_checkpoint(DESIGN, content, tmp_path / str(content))
        ratios[content] = found.archive.size_bytes / found.size_bytes
    assert 1.0 <= ratios[Content.RANDOM] < 1.01
    assert 0.85 < ratios[Content.FLOAT32] < 0.97


def test_the_archive_is_one_that_python_reads_too(checkpoint, tmp_path):
    path = tmp_path / "model.tar.gz"
    path.write_bytes(content_of(checkpoint.archive))
    with tarfile.open(path) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "files", filter="data")
    assert names == [
        "config.json", "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin",
    ]  # fmt: skip
    check_copy(checkpoint, tmp_path / "files", bytes_too=True)


@pytest.mark.parametrize("way", Way)
def test_every_way_brings_every_byte(way, checkpoint, store, tmp_path):
    folder = tmp_path / "fetched" / "files"
    folder.mkdir(parents=True)
    cost = fetch(way, checkpoint, store, folder, client_variables(store, tmp_path))
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


def test_a_copy_that_differs_is_found(checkpoint, store, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    fetch(Way.SYNC, checkpoint, store, folder, client_variables(store, tmp_path))
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
    with pytest.raises(BenchmarkError, match="nothing was answered with 404"):
        store.read("nothing", lambda _part: None)
    with pytest.raises(BenchmarkError, match="reading from the local S3 failed: nothing was"):
        store.raw_bytes_per_second("nothing", 2)


def test_a_client_that_leaves_early_does_no_harm(checkpoint, store):
    connection = HTTPConnection("127.0.0.1", store.port, timeout=10)
    connection.request("GET", f"/{BUCKET}/{checkpoint.files[1].key}")
    connection.close()
    assert store.raw_bytes_per_second(checkpoint.archive.key, 3) > 0


def test_a_damaged_archive_ends_with_what_tar_says(checkpoint, tmp_path):
    archive = checkpoint.archive
    first, *others = archive.pieces
    damaged = replace(checkpoint, archive=replace(archive, pieces=(*others, first)))
    objects = (*damaged.files, damaged.archive)
    with ObjectStore(objects, tmp_path / "log", VARIABLES) as store:
        for way in (Way.STREAMED, Way.STORED):
            folder = tmp_path / str(way) / "files"
            folder.mkdir(parents=True)
            with pytest.raises(BenchmarkError, match=r"`tar` ended with exit code \d+\n.*tar"):
                fetch(way, damaged, store, folder, client_variables(store, tmp_path))


def test_a_key_that_is_missing_ends_with_what_s5cmd_says(checkpoint, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    with (
        ObjectStore((), tmp_path / "log", VARIABLES) as store,
        pytest.raises(BenchmarkError, match=r"s5cmd.* ended with exit code 1\n.*404"),
    ):
        fetch(Way.COPY, checkpoint, store, folder, client_variables(store, tmp_path))


def test_a_prefix_that_is_empty_is_found_though_s5cmd_sync_ends_well(checkpoint, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
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
    assert all(rate > 0 for rate in found.store_bytes_per_second.values())
    assert found.disk_bytes_per_second > 0
    assert found.archive_bytes[Content.RANDOM] > found.archive_bytes[Content.FLOAT32]
    assert len([line for line in said if " round " in line]) == 2 * len(TRANSFERS)
    assert not (tmp_path / "fetched").exists()


def test_what_brings_other_bytes_ends_the_benchmark_and_is_named(tmp_path, monkeypatch):
    def fetch_nothing(*_arguments: object) -> Timing:
        return Timing(1.0, 1.0)

    monkeypatch.setattr(weights, "fetch", fetch_nothing)
    first = DESIGN.transfer_rounds()[0][0]
    with pytest.raises(BenchmarkError, match=f"{first.key}: what arrived is {{}}, and what was"):
        measure_weights(DESIGN, tmp_path, nothing_said)
    assert not (tmp_path / "fetched").exists()


def test_a_disk_that_is_too_small_is_named_with_what_to_do(tmp_path):
    huge = replace(DESIGN, blocks_per_shard=10**12)
    with pytest.raises(BenchmarkError) as caught:
        check_disk(huge, tmp_path / "not" / "there")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path} has ")
    assert message.endswith(
        " GB there. Free some, name another disk with --folder, or measure the other part alone "
        "with --part serving."
    )
    assert f"the weights part needs {huge.disk_bytes / 1e9:.1f} GB" in message


def test_a_program_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(transfers, "program_path", lambda: "/nowhere")
    with pytest.raises(BenchmarkError) as caught:
        transfers.check_programs()
    assert str(caught.value) == (
        "`tar` is not installed, and the weights part extracts a tar.gz with it. On Debian and "
        "Ubuntu: `apt-get install tar`."
    )


@pytest.mark.size("all")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_nothing(number, tmp_path):
    folder, log = tmp_path / "folder", tmp_path / "log"
    arguments = ["--quick", "--part", "weights", "--folder", str(folder)]
    command = [
        sys.executable,
        "-m",
        "benchmarks.lmi",
        *arguments,
        "--output",
        str(tmp_path / "out"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: "round 1" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        assert len(list(folder.iterdir())) == 1
        process.send_signal(number)
        assert process.wait(_END_SECONDS) == 130, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert "Stopped." in log.read_text()
    assert list(folder.iterdir()) == []
    assert list((tmp_path / "out").iterdir()) == []
