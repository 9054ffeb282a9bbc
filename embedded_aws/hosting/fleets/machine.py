"""An instance that runs copies of inference components: a name, a zone, and what it keeps.

A cache fills a copy's model directory as a download does. With DataCacheConfig AWS keeps "the model
artifacts and container image" on each instance (botocore's documentation, 1.44).
"""

import secrets
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from slipway.embedded_aws.hosting.fleets import model_download


class Machine:
    """One instance: its id has EC2's form, and its zone is a number."""

    def __init__(self, zone: int) -> None:
        self.id = f"i-{secrets.token_hex(9)[:17]}"
        self.zone = zone
        self._kept: dict[str, Path] = {}
        self._lock = threading.Lock()

    def fill(self, uri: str, directory: Path, root: Path, download: Callable[[], None]) -> None:
        """`download` fills the directory from S3. `root` holds the caches of all instances."""
        with self._lock:
            if uri in self._kept:
                shutil.copytree(self._kept[uri], directory, dirs_exist_ok=True)
                return
            download()
            kept = root / self.id / str(len(self._kept))
            shutil.copytree(directory, kept)
            self._kept[uri] = kept

    def release(self) -> None:
        with self._lock:
            for kept in self._kept.values():
                model_download.remove(kept)
            self._kept.clear()
