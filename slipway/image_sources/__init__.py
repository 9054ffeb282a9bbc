"""Which files make each container image, and their fingerprint.

The fingerprint is in the image's tag: a change elsewhere changes no image. The sources are part of
this package, in the folder `containers` beside this file. A project that has one of the folders of
`IMAGE_SOURCES` builds that image from its own folder.
"""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from slipway.codes.code import Code
from slipway.errors import UserError

SOURCES_FOLDER: Final = Path(__file__).parent
"""The folder with `containers`, which Python finds as a package of that name, as in the images."""

# Container family -> the folders and files that its image takes.
IMAGE_SOURCES: Mapping[str, Sequence[str]] = {
    "tensorrt": (
        "containers/__init__.py",
        "containers/encoders",
        "containers/jobs",
        "containers/serving",
        "containers/tensorrt",
    ),
    "neuron": (
        "containers/__init__.py",
        "containers/encoders",
        "containers/jobs",
        "containers/serving",
        "containers/neuron",
    ),
    "lmi": ("containers/lmi/Dockerfile", "containers/lmi/handler"),
    "triton": (
        "containers/__init__.py",
        "containers/jobs",
        "containers/serving",
        "containers/tensorrt",
        "containers/triton",
    ),
}

# Lists of packages, from which the pinned lists in the images are made. Everything else is in an
# image: the image that compiles is built from the same files, with their fingerprint in its tag.
_NOT_IN_IMAGE = ".in"
_CACHES = frozenset({"__pycache__"})
# Without one of these an image cannot be built, or does not start.
_NEEDED = ("Dockerfile", "__init__.py", "__main__.py")
# ECR tags have 128 characters at most; 16 hexadecimal digits tell any two builds apart.
_TAG_LENGTH = 16


def image_files(root: Path, family: str) -> dict[str, Path]:
    """Lists an image's source files in a fixed order, by their names in the image's build.

    The project's own sources come before Slipway's. Hidden files are an editor's. Raises
    `UserError` if sources are missing.
    """
    files: dict[str, Path] = {}
    for source in IMAGE_SOURCES[family]:
        folder = _folder_of(root, source)
        path = folder / source
        if path.is_file():
            files[source] = path
        for found in path.rglob("*"):
            if _is_source(name := found.relative_to(folder)) and found.is_file():
                files[name.as_posix()] = found
    return {name: files[name] for name in sorted(files)}


def image_digest(root: Path, family: str) -> str:
    """Fingerprints an image's sources: the paths and bytes of its files, nothing of the machine."""
    digest = hashlib.sha256()
    for name, file in image_files(root, family).items():
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{content}  {name}\n".encode())
    return digest.hexdigest()[:_TAG_LENGTH]


def copy_image_files(root: Path, family: str, destination: Path) -> None:
    for name, file in image_files(root, family).items():
        target = destination / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def link_sources(root: Path, destination: Path) -> Path:
    """Returns the folder with the package `containers` that a project's programs run from.

    `destination` becomes that folder, of links, where the project has sources of its own.
    """
    sources = {source for each in IMAGE_SOURCES.values() for source in each}
    places = {source: (_folder_of(root, source) / source).resolve() for source in sources}
    if all(place == (SOURCES_FOLDER / source).resolve() for source, place in places.items()):
        return SOURCES_FOLDER
    shutil.rmtree(destination, ignore_errors=True)
    for source, place in places.items():
        target = destination / source
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(place)
    return destination


def _folder_of(root: Path, source: str) -> Path:
    """Returns the folder that has a source: the project, or Slipway; raises `UserError`."""
    slipways = SOURCES_FOLDER / source
    if not (root / source).exists():
        if slipways.exists():
            return SOURCES_FOLDER
        raise UserError.of(
            Code.IMAGE_SOURCE_MISSING,
            f"{source} is missing, a source of an image",
            "Restore it with git, or install Slipway again.",
        )
    missing = [
        name
        for name in _NEEDED
        if (slipways / name).exists() and not (root / source / name).exists()
    ]
    if missing:
        raise UserError.of(
            Code.IMAGE_SOURCE_MISSING,
            f"{source} of this project replaces Slipway's, and lacks {', '.join(missing)}",
            f"Copy {'it' if len(missing) == 1 else 'them'} from {slipways}, "
            f"or remove {root / source}.",
        )
    return root


def _is_source(name: Path) -> bool:
    return (
        _CACHES.isdisjoint(name.parts)
        and not any(part.startswith(".") for part in name.parts)
        and name.suffix != _NOT_IN_IMAGE
    )
