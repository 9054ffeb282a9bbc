"""versitygw, an S3 server that is not moto, on loopback."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.publish import storage
from slipway.embedded_aws.identity import ACCESS_KEY_ID
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.starts import count_start
from tools.go_programs import VERSITYGW


@contextmanager
def versitygw(directory: Path, region: str) -> Iterator[str]:
    """Runs one for the embedded AWS's key, with files and log in the directory; gives its URL."""
    count_start("server")
    server = VERSITYGW.place(os.environ)
    assert server is not None
    with storage.versitygw(
        server,
        directory,
        # Without it, a listing during an overwrite shows a temporary object.
        "--disableotmp",
        region=region,
        key_id=ACCESS_KEY_ID,
        secret=SECRET_ACCESS_KEY,
    ) as url:
        yield url
