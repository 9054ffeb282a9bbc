"""How uploads are grouped for s5cmd."""

from pathlib import Path

import pytest

from slipway.publishing.s5cmd import Folder, Upload, batches

MEBIBYTE = 1 << 20
FOLDER = Folder(Path("/files"), "s3://bucket/artifacts/0/files/")


def of(*sizes_bytes: int) -> list[Upload]:
    return [
        Upload(Path(f"/files/{number}"), f"s3://bucket/artifacts/0/files/{number}", size_bytes)
        for number, size_bytes in enumerate(sizes_bytes)
    ]


@pytest.mark.parametrize(
    ("count", "size_mebibytes", "expected"),
    [
        # One file has many parts at once, and many files have s5cmd's five parts each.
        (1, 1_000, (3, 32, 50)),
        (4, 1_000, (4, 25, 50)),
        (20, 1_000, (20, 5, 50)),
        (500, 1_000, (20, 5, 50)),
        # A part grows with its file: at most a thousand requests a file.
        (1, 350_000, (3, 32, 350)),
        (1, 350_001, (3, 32, 351)),
    ],
)
def test_large_files_share_a_hundred_connections(
    count: int, size_mebibytes: int, expected: tuple[int, int, int]
) -> None:
    (batch,) = batches(of(*[size_mebibytes * MEBIBYTE] * count), FOLDER)
    assert (batch.workers, batch.concurrency, batch.part_mebibytes) == expected
    assert batch.workers * batch.concurrency <= 100
    assert batch.folder is None


def test_small_files_have_many_workers_and_one_command_for_a_whole_folder() -> None:
    (batch,) = batches(of(*[50 * MEBIBYTE] * 100), FOLDER)
    assert (batch.workers, batch.folder, len(batch.uploads)) == (256, FOLDER, 100)
    for (batch,) in (batches(of(*[1] * 100)), batches(of(*[1] * 99), FOLDER)):
        assert batch.folder is None


def test_large_files_come_first_and_small_ones_do_not_wait_for_their_workers() -> None:
    uploads = of(1, 51 * MEBIBYTE, 2, *[3] * 200)
    large, small = batches(uploads, FOLDER)
    assert list(large.uploads) == [uploads[1]]
    assert list(small.uploads) == [uploads[0], *uploads[2:]]
    # The folder has more than the small files.
    assert (small.workers, small.folder) == (256, None)
