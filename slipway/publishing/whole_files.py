"""Replaces a file in one step: a reader, or a kill, sees the old content or the new one."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(path: Path, text: str, *, scratch: Path) -> None:
    """Writes a file anew.

    Args:
        path: the file.
        text: its content.
        scratch: folder of the same file system, made if it is not there, where a kill leaves what
            was written so far. An error leaves nothing.

    Raises:
        OSError: it cannot be written.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=scratch, prefix=f"{path.name}.", delete=False, encoding="utf-8"
    ) as file:
        temporary = Path(file.name)
        try:
            file.write(text)
            file.flush()
            temporary.chmod(0o644)
            temporary.replace(path)
        except BaseException:
            temporary.unlink()
            raise


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Waits until no other process is in such a block; the end of a process ends its block.

    Args:
        lock: an empty file, made if it is not there, that stands for the block.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
