"""Replaces a file in one step: a reader, or a kill, sees the old content or the new one."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(path: Path, text: str, *, scratch: Path) -> None:
    """Writes a file anew; an error leaves nothing.

    A kill leaves what was written so far in `scratch`, a folder of the same file system.
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
    """Waits until no other process is in such a block, for which an empty file stands."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
