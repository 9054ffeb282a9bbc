"""The source of a build: Slipway as a wheel, its pinned packages, and what publishing reads.

No weights and no credentials are in it: the files are those that are listed here, and no others.
"""

import base64
import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import slipway
from slipway.config.names import ENVIRONMENTS_FILE
from slipway.image_sources import image_files
from slipway.planning.deployment import Deployment
from slipway.planning.remote_place import CA_BUNDLE_FILE, SOURCES_PREFIX
from slipway.project import Project
from slipway.publishing.families import PACKAGING

# Of this version of Slipway, with the SHA-256 of each package.
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_LIST = "SHA256SUMS"
_PROJECT = "project"
# Folders below the package that publishing does not import. The images' sources are the project's.
_LEFT_OUT = frozenset({"cdk", "image_sources/containers", "new_project", "stacks"})
_SUFFIXES = (".py", ".json", ".md", ".typed")
# The earliest that ZIP files can have.
_MOMENT = (1980, 1, 1, 0, 0, 0)
_INFO = f"slipway-{slipway.__version__}.dist-info"
WHEEL = f"slipway-{slipway.__version__}-py3-none-any.whl"


@dataclass(frozen=True)
class Source:
    """A build's source: a ZIP file.

    The digest is of the list of its files, which has the SHA-256 of each.
    """

    digest: str
    archive: bytes

    @property
    def key(self) -> str:
        """Returns its key in the artifact bucket."""
        return f"{SOURCES_PREFIX}{self.digest}.zip"


def make_source(project: Project, deployment: Deployment) -> Source:
    files = {_REQUIREMENTS.name: _REQUIREMENTS.read_bytes(), WHEEL: wheel()}
    files |= {f"{_PROJECT}/{n}": each for n, each in _project_files(project, deployment).items()}
    if (bundle := deployment.environment.image_builds.ca_bundle) is not None:
        files[CA_BUNDLE_FILE] = (project.root / bundle).read_bytes()
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    listed = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(sums.items())).encode()
    return Source(hashlib.sha256(listed).hexdigest(), zipped({**files, _LIST: listed}))


def _project_files(project: Project, deployment: Deployment) -> dict[str, bytes]:
    """Returns what publishing reads of the project: path to content."""
    name, root = deployment.config.name, project.root
    paths = [root / ENVIRONMENTS_FILE, project.files[name]]
    if (bundle := deployment.environment.image_builds.ca_bundle) is not None:
        paths.append(root / bundle)
    if (lock := project.lock_path(name)).exists():
        paths.append(lock)
    sources: dict[str, Path] = {}
    for each in project.published_names(name, deployment.environment):
        family = project.deployment(each, deployment.environment).image_family
        if family is not None:
            # The tags of images follow from them.
            sources |= image_files(root, family)
    named = {path.relative_to(root).as_posix(): path for path in paths} | sources
    files = {name: path.read_bytes() for name, path in named.items()}
    packaging = PACKAGING[deployment.container]
    directory = packaging.directory(deployment)
    own = packaging.read(deployment, root)
    return files | {f"{directory}/{path}": content for path, content in own.items()}


def wheel() -> bytes:
    """Returns Slipway's code as a wheel; the same code gives the same bytes.

    A build needs only what publishing imports. The format is in
    https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
    """
    package = Path(slipway.__file__).parent
    files = {}
    # In a checkout some folders are links.
    for folder, folders, names in os.walk(package, followlinks=True):
        inside = Path(folder).relative_to(package)
        folders[:] = [name for name in folders if (inside / name).as_posix() not in _LEFT_OUT]
        for path in (Path(folder, name) for name in names):
            if path.suffix in _SUFFIXES:
                files[path.relative_to(package.parent).as_posix()] = path.read_bytes()
    files[f"{_INFO}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: slipway\nVersion: {slipway.__version__}\n"
    ).encode()
    files[f"{_INFO}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: slipway\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = [f"{name},{_hash(content)},{len(content)}" for name, content in sorted(files.items())]
    files[f"{_INFO}/RECORD"] = "\n".join([*record, f"{_INFO}/RECORD,,", ""]).encode()
    return zipped(files)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Returns a ZIP file; the same files give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _hash(content: bytes) -> str:
    digest = hashlib.sha256(content).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
