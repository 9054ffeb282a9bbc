"""versitygw on this machine, and the variables that point programs at it."""

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import boto3
from botocore.config import Config
from moto.server import ThreadedMotoServer

from benchmarks.errors import BenchmarkError
from benchmarks.machine import program_path
from benchmarks.processes import BackgroundProcess, free_port
from benchmarks.publish.projects import REGION
from slipway.embedded_aws.cache import cache_directory
from slipway.errors import UserError
from slipway.publishing import s5cmd
from slipway.publishing.manifest import Manifest
from slipway.publishing.stored import in_base64

_KEY_ID, _SECRET = "benchmark", "benchmark-secret"  # of a server on loopback
_START_SECONDS = 60.0
_READ_SECONDS = 30.0
_READ_BYTES = 1 << 20
_HEALTH = "/health"


class Storage:
    """The server's buckets, which are folders of this machine, and the address of an STS."""

    def __init__(self, url: str, account_url: str, folder: Path) -> None:
        self._url, self._account_url = url, account_url
        self._folder = folder

    def variables(self, home: Path) -> Mapping[str, str]:
        """Returns the whole environment of the programs: only the search path is the user's."""
        return {
            "PATH": program_path(),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL_S3": self._url,
            "AWS_ENDPOINT_URL_STS": self._account_url,
            # s5cmd's name for it.
            "S3_ENDPOINT_URL": self._url,
            "AWS_ACCESS_KEY_ID": _KEY_ID,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
        }

    @cached_property
    def _client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self._url,
            region_name=REGION,
            aws_access_key_id=_KEY_ID,
            aws_secret_access_key=_SECRET,
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
        )

    def make_bucket(self, bucket: str) -> None:
        self._client.create_bucket(Bucket=bucket)

    def folder_of(self, bucket: str) -> Path:
        return self._folder / "objects" / bucket

    def read(self, bucket: str, key: str, take: Callable[[memoryview], object]) -> None:
        """Reads an object with one GET, at little cost for this process."""
        url = self._client.generate_presigned_url("get_object", {"Bucket": bucket, "Key": key})
        buffer = memoryview(bytearray(_READ_BYTES))
        try:
            with urlopen(url, timeout=_READ_SECONDS) as answer:  # noqa: S310  # as below
                while count := answer.readinto(buffer):
                    take(buffer[:count])
        except URLError as error:
            raise BenchmarkError(f"{key} cannot be read from the local S3: {error}") from None

    def empty(self, bucket: str) -> None:
        """Removes every object of a bucket, without the server, which keeps no state of its own."""
        for folder in _FOLDERS:
            root = self._folder / folder / bucket
            for prefix in ("incoming", "artifacts", "recipes", "copied"):
                shutil.rmtree(root / prefix, ignore_errors=True)

    def sizes_bytes(self, bucket: str) -> list[int]:
        """Returns the sizes of a bucket's objects, without manifests and files on their way."""
        return [found.st_size for found in self._objects(bucket)]

    def is_sparse(self, bucket: str) -> bool:
        """Returns whether no object of a bucket takes space, manifests excluded."""
        return all(found.st_blocks == 0 for found in self._objects(bucket))

    def _objects(self, bucket: str) -> list[os.stat_result]:
        root = self.folder_of(bucket)
        return [
            path.stat()
            for path in root.rglob("*")
            if path.is_file()
            and path.name != "manifest.json"
            and path.relative_to(root).parts[0] != "incoming"
        ]

    def put_sparse(self, bucket: str, manifest: Manifest) -> None:
        """Makes the objects of an artifact without its manifest: sparse files, as if S3 had hashed.

        Publishing then asks for the hash that S3 keeps of each object, and reads none of them.
        """
        files = Path(bucket) / "artifacts" / manifest.digest / "files"
        for entry in manifest.entries:
            path = self._folder / "objects" / files / entry.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.truncate(path, entry.size_bytes)
            kept = self._folder / "metadata" / files / entry.path / "meta"
            kept.mkdir(parents=True)
            hashes = {
                "Algorithm": "SHA256",
                "Type": "FULL_OBJECT",
                "SHA256": in_base64(entry.sha256),
            }
            (kept / "checksums").write_text(json.dumps(hashes), "utf-8")
            (kept / "etag").write_text(f'"{entry.sha256[:32]}"', "utf-8")

    def remove_manifest(self, bucket: str, manifest: Manifest) -> None:
        """Removes an artifact's manifest, so that the next publish looks at every file."""
        for folder in _FOLDERS:
            path = self._folder / folder / bucket / "artifacts" / manifest.digest / "manifest.json"
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


_FOLDERS = ("objects", "metadata")


def find_server(environ: Mapping[str, str]) -> Path:
    """Returns versitygw's program, as it was built last; its folder has the version's name."""
    kept = cache_directory(environ)
    built = [] if kept is None else kept.glob("versitygw/*/versitygw")
    server = max(built, key=lambda path: path.stat().st_mtime, default=None)
    if server is None:
        raise BenchmarkError("versitygw is not built here: run `make versitygw` first")
    return server


@contextmanager
def versitygw(
    server: Path, folder: Path, *options: str, region: str, key_id: str, secret: str
) -> Iterator[str]:
    """Runs the server with its objects and its metadata below a folder; yields its URL."""
    for each in _FOLDERS:
        (folder / each).mkdir(parents=True)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        *(str(server), "--quiet", "--port", f"127.0.0.1:{port}", "--health", _HEALTH),
        *("--region", region, "posix", "--sidecar", str(folder / "metadata"), *options),
        str(folder / "objects"),
    ]
    environment = {"ROOT_ACCESS_KEY_ID": key_id, "ROOT_SECRET_ACCESS_KEY": secret}
    with BackgroundProcess(command, folder, environment, folder / "log") as process:
        process.wait_until(lambda: _is_healthy(url), _START_SECONDS)
        yield url


@contextmanager
def opened_storage(folder: Path, server: Path) -> Iterator[Storage]:
    """Runs the server, and an STS, in an empty folder on the disk that is measured."""
    # The server logs each request.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    account = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    account.start()
    try:
        host, port = account.get_host_and_port()
        with versitygw(server, folder, region=REGION, key_id=_KEY_ID, secret=_SECRET) as url:
            yield Storage(url, f"http://{host}:{port}", folder)
    finally:
        account.stop()


def _is_healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}{_HEALTH}") as answer:  # noqa: S310  # this machine's server
            return bool(answer.status == 200)
    except URLError:
        return False


def find_program(name: str, remedy: str) -> str:
    found = shutil.which(name, path=program_path())
    if found is None:
        raise BenchmarkError(f"`{name}` is not installed{remedy}")
    return found


def find_s5cmd() -> str:
    try:
        return s5cmd.executable()
    except UserError as error:
        raise BenchmarkError(str(error)) from None
