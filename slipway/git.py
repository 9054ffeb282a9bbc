"""Reads the git repository of a project, where there is one; changes nothing in it."""

import io
import subprocess
import tarfile
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import UserError

_NOT_FOUND = 127


def git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Runs git in a folder; its exit code is 127 where git is not installed."""
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # no shell
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
    # In a folder of a repository, `git archive` looks for the folder in the tree.
    directory = Path(git(root, "rev-parse", "--absolute-git-dir").stdout.decode().strip())
    packed = git(directory, "archive", "--format=tar", found)
    if packed.returncode:  # an object that a partial clone cannot fetch, a filter that fails
        raise _refused(f"git does not give the files of {tree}", packed)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        # Git has no paths outside of its tree. A link may lead anywhere, and is not followed.
        archive.extractall(folder, filter="tar")
