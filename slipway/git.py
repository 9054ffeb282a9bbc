"""Reads the git repository of a project, where there is one; changes nothing in it."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import UserError

_NOT_FOUND = 127


def git(
    root: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs git in a folder; its exit code is 127 where git is not installed."""
    command = ["git", "-C", str(root), *arguments]
    environment = {**os.environ, **(variables or {})}
    try:
        return subprocess.run(command, capture_output=True, check=False, env=environment)  # noqa: S603
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


def unpack(root: Path, tree: str, folder: Path) -> None:
    """Writes a tree's files into a folder, none if a commit lacks the tree; raises `UserError`."""
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
        for step in (["read-tree", found], ["checkout-index", "--all"]):
            done = git(folder, *step, variables=own)
            if done.returncode:  # an object that a partial clone cannot fetch, a filter that fails
                raise _refused(f"git does not give the files of {tree}", done)
