"""The source of a build: Slipway as a wheel, its pinned packages, and what publishing reads.

No weights and no credentials are in it: the files are those that are listed here, and no others.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from slipway.config.names import ENVIRONMENTS_FILE
from slipway.image_sources import image_files
from slipway.planning.deployment import Deployment
from slipway.planning.remote_place import CA_BUNDLE_FILE, SOURCES_PREFIX
from slipway.project import Project
from slipway.publishing.families import PACKAGING
from slipway.publishing.remote.wheel import WHEEL, wheel, zipped

# Of this version of Slipway, with the SHA-256 of each package.
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_LIST = "SHA256SUMS"
_PROJECT = "project"


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
