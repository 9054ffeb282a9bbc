"""Reads the directory that a model publishes as it is, and checks where its folders lie."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from slipway.codes.code import Code
from slipway.config.checkpoint import begins_as_pointer
from slipway.config.schema import ModelConfig
from slipway.errors import FieldPath, Kind, Problem
from slipway.planning.deployment import Deployment
from slipway.planning.directory import (
    LARGEST_TEXT_BYTES,
    Directory,
    DirectoryFindings,
    PublishedDirectory,
)

ALLOWED_VARIABLE: Final = "SLIPWAY_ALLOW_OUTSIDE"
LONGEST_POINTER_BYTES: Final = 1023
PRIVATE_FOLDERS: Final = frozenset({".git", ".slipway"})
"""History with addresses that may have tokens, and what Slipway keeps."""


def find_escapes(
    project: Path,
    config: ModelConfig,
    published: PublishedDirectory | None = None,
    environment: Mapping[str, str] = os.environ,
) -> list[Problem]:
    """Returns a problem for each folder of a config that really lies outside the project.

    A commit of somebody else's can bring a link to any folder of this machine. Only this machine's
    environment says which folders links may lead to: SLIPWAY_ALLOW_OUTSIDE has them, separated as
    in PATH. `published` is another folder that the family publishes.
    """
    artifacts, serving = config.artifacts, config.serving
    folders: dict[FieldPath, str | None] = {
        ("artifacts", name, "path"): getattr(getattr(artifacts, name), "path", None)
        for name in ("sample", "release", "weights")
    }
    for name in ("repository", "script", "requirements"):
        folders["serving", name] = getattr(serving, name, None)
    if published is not None:
        folders[published.field] = published.path
    outside = environment.get(ALLOWED_VARIABLE, "").split(os.pathsep)
    allowed = [project.resolve(), *(Path(each).resolve() for each in outside if each)]
    problems = []
    for field, path in folders.items():
        real = (project / (path or "")).resolve()
        base = next((each for each in allowed if real.is_relative_to(each)), None)
        if base is None:
            message = f"{path} leads out of the project, to {real}"
            remedy = "Copy the files into the project. If everything there may be published, set "
            remedy += f"{ALLOWED_VARIABLE}={real}."
        elif private := PRIVATE_FOLDERS.intersection(real.relative_to(base).parts):
            message = f"{path} leads into {min(private)}, whose files belong to no model"
            remedy = "Name the model's folder."
        else:
            continue
        problems.append(Problem(Code.PATH_OUTSIDE_PROJECT, Kind.VALUE, message, remedy, field))
    return problems


def find_in_directory(project: Path, deployment: Deployment) -> DirectoryFindings:
    source = deployment.published_directory
    if source is None or not deployment.text_names:
        return DirectoryFindings()
    root = project / source.path
    sizes_bytes, texts, empty, pointers = dict[str, int](), dict[str, bytes](), [], set[str]()
    for folder, folders, files in os.walk(root):
        within = Path(folder).relative_to(root)
        if not folders and not files and within.parts:
            empty.append(within.as_posix())
        for name in files:
            path, shown = Path(folder, name), (within / name).as_posix()
            try:
                sizes_bytes[shown] = path.stat().st_size
                if name in deployment.text_names and sizes_bytes[shown] <= LARGEST_TEXT_BYTES:
                    texts[shown] = path.read_bytes()
                elif (
                    path.is_file()
                    and sizes_bytes[shown] <= LONGEST_POINTER_BYTES
                    and begins_as_pointer(path)
                ):
                    pointers.add(shown)
            except OSError:
                # A broken link, which publishing reports.
                sizes_bytes.pop(shown, None)
    if not root.is_dir():
        return DirectoryFindings()
    return deployment.check_directory(
        Directory(source.path, source.field, sizes_bytes, texts, empty, pointers)
    )
