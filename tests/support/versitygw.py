"""versitygw, an S3 server that is not moto, on loopback."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from embedded_aws.identity import ACCESS_KEY_ID
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.page_runs import free_port
from tests.support.starts import count_start
from tests.support.waiting import eventually
from tools.versitygw import VERSITYGW

_HEALTH = "/health"


@contextmanager
def versitygw(directory: Path, region: str) -> Iterator[str]:
    """Runs one for the embedded AWS's key; gives its URL.

    Args:
        directory: receives its files and its log.
        region: of its buckets.
    """
    count_start("server")
    server = VERSITYGW.place(os.environ)
    assert server is not None
    objects, metadata = directory / "objects", directory / "metadata"
    for folder in (objects, metadata):
        folder.mkdir(parents=True)
    port = free_port()
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [
                *(str(server), "--quiet", "--port", f"127.0.0.1:{port}", "--health", _HEALTH),
                *("--region", region, "posix", "--sidecar", str(metadata)),
                # Without it, a listing during an overwrite shows a temporary object.
                *("--disableotmp", str(objects)),
            ],
            env={
                "ROOT_ACCESS_KEY_ID": ACCESS_KEY_ID,
                "ROOT_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"

    def is_ready() -> bool:
        assert process.poll() is None, (directory / "log").read_text()
        try:
            with urlopen(f"{url}{_HEALTH}") as answer:  # noqa: S310
                return bool(answer.status == 200)
        except URLError:
            return False

    try:
        eventually(is_ready)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)
