"""Reads the git repository of a project, where there is one; changes nothing in it."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import UserError

_NOT_FOUND = 127


def git(
    root: Path, *arguments: str, variables: Mapping[str, str] | None = None, sent: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Runs git in a folder; its exit code is 127 where git is not installed."""
    command = ["git", "-C", str(root), *arguments]
    environment = {**os.environ, **(variables or {})}
    try:
        return subprocess.run(  # noqa: S603
            command, capture_output=True, check=False, env=environment, input=sent
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, _NOT_FOUND, b"", b"git is not installed")


def commit_of(root: Path, ref: str) -> str:
    """Returns the hash of a commit; raises `UserError` if there is none."""
    if (found := find_commit(root, ref)) is not None:
        return found
    asked = git(root, "rev-parse", "--is-shallow-repository")
    if asked.returncode:  # no git, no repository, or somebody else's
        raise _refused(f"git reads no commit {ref} here", asked)
    fetch = f"git fetch {'--unshallow ' if asked.stdout.strip() == b'true' else ''}--tags origin"
    raise UserError.of(
        Code.UNKNOWN_REF,
        f"git has no commit {ref or '``'}",
        "Name a branch, a tag or a commit of this repository, such as `origin/main`; "
        f"`{fetch} '+refs/heads/*:refs/remotes/origin/*'` brings the others.",
    )


def _refused(what: str, done: subprocess.CompletedProcess[bytes]) -> UserError:
    told = " ".join(done.stderr.decode(errors="replace").split())
    return UserError.of(Code.UNKNOWN_REF, f"{what}: {told}", "Mend what git says.")


def find_commit(root: Path, ref: str) -> str | None:
    """Returns the hash of a commit; None without it, or outside a repository."""
    done = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    return done.stdout.decode().strip() if done.returncode == 0 else None


def unpack(
    root: Path, tree: str, folder: Path, is_read: Callable[[str, int], bool] = lambda *_: True
) -> None:
    """Writes a tree's files into a folder, none if a commit lacks the tree; raises `UserError`.

    A file of whose path and size in bytes `is_read` says no has its size, but no content and no
    room on the disk.
    """
    found = git(root, "rev-parse", "--verify", "--quiet", tree).stdout.decode().strip()
    if not found:
        return
    folder.mkdir(parents=True, exist_ok=True)
    directory = git(root, "rev-parse", "--absolute-git-dir").stdout.decode().strip()
    with tempfile.TemporaryDirectory(prefix="slipway-index-") as kept:
        # An index and a work tree of its own: the user's stay as they are.
        own = {"GIT_DIR": directory, "GIT_WORK_TREE": str(folder)}
        # Plans read no file that lies in Git LFS.
        own |= {"GIT_INDEX_FILE": str(Path(kept, "index")), "GIT_LFS_SKIP_SMUDGE": "1"}
        files, names = ["ls-tree", "-rlz", "--full-tree", found], b""
        for step in (["read-tree", found], files, ["checkout-index", "-z", "--stdin"]):
            done = git(folder, *step, variables=own, sent=names)
            if done.returncode:  # an object that a partial clone cannot fetch, a filter that fails
                raise _refused(f"git does not give the files of {tree}", done)
            if step is files:
                names = b"\0".join(_written(done.stdout, folder, is_read))


def _written(listed: bytes, folder: Path, is_read: Callable[[str, int], bool]) -> Iterator[bytes]:
    """Yields the paths to write, and makes the files that nobody reads."""
    for entry in listed.split(b"\0")[:-1]:
        head, _, name = entry.partition(b"\t")
        mode, _, _, size = head.split()
        path = folder / os.fsdecode(name)
        # Links and other repositories have other modes.
        if not mode.startswith(b"100") or is_read(os.fsdecode(name), int(size)):
            yield name
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.truncate(path, int(size))
