"""The part of publishing that each serving family does its own way.

An artifact may have a package of code beside the weights, and what a job wrote may have to be
checked. `slipway.publishing.families` has each family's `Packaging`.
"""

import hashlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.deployment import Deployment
from slipway.planning.lock import Accuracy, LockedPart
from slipway.publishing.directory import publish_files
from slipway.publishing.file_set import CONFIG, TOKENIZER, WEIGHTS, FileSet
from slipway.publishing.manifest import Manifest, ManifestEntry, Snapshot
from slipway.publishing.store import ArtifactStore
from slipway.publishing.weights import part

ACCURACY_FILE = "accuracy.json"
"""What a job that quantises writes beside the model: the fields of an `Accuracy`."""

# Told the S3 client, the job's name and the address of what it wrote. Returns the accuracy if the
# job quantised.
Inspection = Callable[[Any, str, str], Accuracy | None]


@dataclass(frozen=True)
class Package:
    """The files of a package of code, by path, as every environment has them.

    `source` is where the code comes from, for the lock.
    """

    files: Mapping[str, bytes]
    source: str

    @property
    def digest(self) -> str:
        """Returns the package's content address, which is the same in every environment."""
        entries = (
            ManifestEntry(path, len(content), hashlib.sha256(content).hexdigest())
            for path, content in sorted(self.files.items())
        )
        return Manifest(tuple(entries)).digest

    def rendered(self, place: ArtifactPlace) -> Mapping[str, bytes]:
        """Returns the files as a place gets them."""
        return self.files


class Packaging:
    """A family whose artifact has no package, and whose jobs' output needs no check."""

    def read(self, deployment: Deployment, root: Path) -> Mapping[str, bytes]:
        """Returns the package's files that are the user's own, before anything moves."""
        return {}

    def directory(self, deployment: Deployment) -> str | None:
        """Returns the directory in the project that `read` reads; None if it reads none."""
        return None

    def inspection(self, deployment: Deployment) -> Inspection | None:
        """Returns the check of a job's output; None if it needs none."""
        return None

    def needs(self, deployment: Deployment) -> Collection[str]:
        """Returns the kinds of files that the container does not start without.

        An image that Slipway does not build takes any files.
        """
        if deployment.image_family is None:
            return ()
        return (CONFIG, WEIGHTS, TOKENIZER) if deployment.is_compiled else (CONFIG, WEIGHTS)

    def loads_any(self, deployment: Deployment) -> bool:
        """Returns whether the container may load files of any format."""
        return not self.needs(deployment)

    def check_weights(self, files: Iterable[str]) -> None:
        """Refuses weights that cannot be the model data as they are; raises `UserError`."""

    def check_adapters(self, deployment: Deployment, files: FileSet) -> None:
        """Refuses adapters beside the weights that cannot be loaded; raises `UserError`."""

    def package(
        self, deployment: Deployment, files: Mapping[str, bytes], digest: str
    ) -> Package | None:
        """Returns the package of code; None if the artifact has none.

        `files` are the result of `read`. `digest` is that of the published weights, or of what was
        made of them.
        """
        return None


def publish_package(package: Package, store: ArtifactStore) -> tuple[LockedPart, int]:
    """Publishes a package; returns the lock's part, and how many bytes were sent.

    The part has the digest of every environment.
    """
    with tempfile.TemporaryDirectory(prefix="slipway-package-") as temporary:
        meant = _written(Path(temporary, "package"), package.files).manifest
        sent = _written(Path(temporary, "sent"), package.rendered(store.place))
        size_bytes = publish_files(sent, meant, store)
    return part(meant, source=package.source), size_bytes


def _written(directory: Path, files: Mapping[str, bytes]) -> Snapshot:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Snapshot.of(directory, "the package")
