"""What still refers to artifacts and images: locks of git's refs, and an account's resources.

Everything that looks like a digest counts as a reference. A text that is misread then keeps too
much, never too little.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from slipway.access import Access, paged
from slipway.errors import UserError
from slipway.git import commit_of, find_commit, git, unpack
from slipway.image_sources import IMAGE_SOURCES, image_digest

_DIGEST: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_CONFIGS: Final = "model_configs"
_LOCKS: Final = "*.lock.json"
# Where the sources of Slipway's images are.
_SOURCES: Final = "containers"
_ENVIRONMENT_TAG: Final = "slipway:environment"
_SETTINGS_FILE: Final = "serving.properties"


@dataclass(frozen=True)
class References:
    """What may not be deleted.

    `texts` are of the account's resources; what they name stays. `fingerprints` are of the sources
    of images, which the tags of their images end with. `refs` are those whose locks and sources
    were read; empty outside a git repository.
    """

    digests: frozenset[str]
    texts: Sequence[str]
    fingerprints: frozenset[str]
    refs: Sequence[str]


def find_references(root: Path, refs: Sequence[str], access: Access) -> References:
    """Finds everything that refers to artifacts and images.

    Without refs, every ref of the repository is read. The files of the working tree always count.
    Raises `UserError` if a ref does not exist.
    """
    read = list(refs) or _all_refs(root)
    commits = {commit_of(root, ref) for ref in read}
    texts = list(_account_texts(access))
    locks = [path.read_text("utf-8") for path in sorted(root.glob(f"{_CONFIGS}/{_LOCKS}"))]
    locks += [text for tree in _trees(root, commits, _CONFIGS) for text in _locks_in(root, tree)]
    fingerprints = set(_fingerprints(root))
    for tree in _trees(root, commits, _SOURCES):
        with tempfile.TemporaryDirectory(prefix="slipway-ref-") as temporary:
            unpack(root, tree, Path(temporary, _SOURCES))
            fingerprints.update(_fingerprints(Path(temporary)))
    return References(
        digests=frozenset(digest for text in (*locks, *texts) for digest in digests_in(text)),
        texts=texts,
        fingerprints=frozenset(fingerprints),
        refs=read,
    )


def digests_in(text: str) -> Iterator[str]:
    """Yields the digests that a text has."""
    yield from _DIGEST.findall(text)


def with_packages(digests: frozenset[str], read: Callable[[str], Sequence[str]]) -> frozenset[str]:
    """Returns digests together with those that their packages name.

    An LMI package is an artifact whose serving.properties says where the weights are.
    """
    return digests | {
        found for digest in digests for text in read(digest) for found in digests_in(text)
    }


def is_settings_file(key: str) -> bool:
    """Returns whether a key belongs to a file which may name other artifacts."""
    return key.rpartition("/")[2] == _SETTINGS_FILE


def _account_texts(access: Access) -> Iterator[str]:
    """Yields the JSON of each resource that may refer to an artifact or an image."""
    sagemaker, cloudformation = access.client("sagemaker"), access.client("cloudformation")
    for item in paged(sagemaker, "list_models", "Models"):
        yield _text(sagemaker.describe_model(ModelName=item["ModelName"]))
    for status in ("InProgress", "Stopping"):
        jobs = paged(sagemaker, "list_training_jobs", "TrainingJobSummaries", StatusEquals=status)
        for item in jobs:
            yield _text(sagemaker.describe_training_job(TrainingJobName=item["TrainingJobName"]))
    for stack in paged(cloudformation, "describe_stacks", "Stacks"):
        if any(tag["Key"] == _ENVIRONMENT_TAG for tag in stack.get("Tags", ())):
            # With the parameters and outputs; the template has the properties.
            yield _text(stack)
            yield _text(cloudformation.get_template(StackName=stack["StackId"])["TemplateBody"])


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, default=str)


def _all_refs(root: Path) -> list[str]:
    if git(root, "rev-parse", "--git-dir").returncode != 0:
        return []
    listed = git(root, "for-each-ref", "--format=%(refname)").stdout.decode().split()
    return [*(["HEAD"] if find_commit(root, "HEAD") else []), *listed]


def _trees(root: Path, commits: Iterable[str], folder: str) -> set[str]:
    """Returns a folder's different states in commits, which are far fewer than the commits."""
    # With `./`, git looks in the project, which may be a folder of a repository.
    found = (git(root, "rev-parse", "--verify", f"{each}:./{folder}") for each in commits)
    return {done.stdout.decode().strip() for done in found if done.returncode == 0}


def _locks_in(root: Path, tree: str) -> Iterator[str]:
    listed = git(root, "ls-tree", "-z", "--full-tree", "--name-only", tree).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if Path(name).match(_LOCKS):
            yield git(root, "show", f"{tree}:{name}").stdout.decode()


def _fingerprints(root: Path) -> Iterator[str]:
    for family in IMAGE_SOURCES:
        try:
            yield image_digest(root, family)
        except UserError:
            # An older commit has no sources of this image.
            continue
