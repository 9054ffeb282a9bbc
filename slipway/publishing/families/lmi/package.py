"""An LMI package: serving.properties, and the model.py of a config that brings one.

DJL Serving accepts any content of the file. An unknown key is no error, and a wrongly written value
is another value. The file is therefore read back before it is sent, as the server will read it, and
compared with the intended settings.

The file contains the weights' S3 URI and therefore the bucket name, and the model's name if it is
isolated. Until it is sent, the package has a placeholder for the bucket, and the path of shared
artifacts. The same settings on the same weights therefore have one digest in every environment,
isolated or not. A reviewer sees that production gets the package of staging.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway import java_properties
from slipway.codes.code import Code
from slipway.config.sections.serving.lmi import LmiServing
from slipway.errors import Kind, Problem, UserError
from slipway.planning.artifact_place import SHARED_ARTIFACTS, ArtifactPlace, files_prefix
from slipway.planning.families.lmi.deployment import Lmi
from slipway.publishing.packaging import Package

BUCKET = "{artifact_bucket}"
"""Stands for the bucket in a package that is not sent yet."""

PROPERTIES_FILE = "serving.properties"
SCRIPT_FILE = "model.py"
REQUIREMENTS_FILE = "requirements.txt"
# What the server follows in a model's directory, which is called `model` in the container: settings
# (ModelInfo.java), handlers and pickled models (PyModel.java), requirements (PyEnv.java).
_READ_BY_SERVER = re.compile(
    r"serving\.properties|requirements\.txt|MAR-INF/.*|model"
    r"|model\.(py|skops|joblib|pkl|pickle|cloudpkl)"
)
# A model store with folders and archives alone holds a model in each (ModelStore.java). Of these
# the server takes a file for an archive (ai.djl.repository.FilenameUtils of DJL).
_ARCHIVES = (".mar", ".tar", ".tar.gz", ".tar.z", ".tgz", ".zip")
# Of the handler's own, and of the tools that a developer runs over it.
_CACHES = frozenset({"__pycache__"})


@dataclass(frozen=True)
class LmiPackage(Package):
    """A package whose files have `BUCKET` for the bucket, as shared artifacts have it."""

    def rendered(self, place: ArtifactPlace) -> dict[str, bytes]:
        properties = self.files[PROPERTIES_FILE]
        for old, new in (
            (f"{BUCKET}/{SHARED_ARTIFACTS}", f"{place.bucket}/{place.artifacts_prefix}"),
            (BUCKET, place.bucket),
        ):
            properties = properties.replace(old.encode(), new.encode())
        return {**self.files, PROPERTIES_FILE: properties}


def lmi_package(lmi: Lmi, script: Mapping[str, bytes], weights_digest: str) -> LmiPackage:
    meant = lmi.properties(f"s3://{BUCKET}/{files_prefix('', weights_digest)}")
    content = java_properties.render(meant)
    if java_properties.parse(content) != meant:
        raise ValueError(f"{lmi.config.name}: {PROPERTIES_FILE} does not say what was meant")
    files = {**script, PROPERTIES_FILE: content}
    source = lmi.serving.script or lmi.serving.requirements or "the config"
    return LmiPackage(files, source=source)


def script_files(serving: LmiServing, root: Path) -> dict[str, bytes]:
    """Reads the directory in `serving.script` or `serving.requirements`, without hidden files.

    Raises `UserError` if there is nothing that the server would start or install, or something that
    it would not read.
    """
    script = serving.script or serving.requirements
    if script is None:
        return {}
    is_handler = serving.script is not None
    directory, field = root / script, ("serving", "script" if is_handler else "requirements")
    name = SCRIPT_FILE if is_handler else REQUIREMENTS_FILE
    if not (directory / name).is_file():
        message = f"{script} has no {name}, which is what DJL Serving "
        message += "starts" if is_handler else "installs"
        remedy = f"Put the handler there, with `handle(inputs)` in {name}."
        if not is_handler:
            remedy = f"Put the list of packages there as {name}."
        raise UserError.of(Code.HANDLER_FILES, message, remedy, kind=Kind.VALUE, field=field)
    if not is_handler and (directory / SCRIPT_FILE).exists():
        raise UserError.of(
            Code.HANDLER_FILES,
            f"{script} has a {SCRIPT_FILE}, which DJL Serving would start",
            "Name the directory as `script`, or move that file out of it.",
            kind=Kind.VALUE,
            field=field,
        )
    files = {
        path.relative_to(directory).as_posix(): path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and _travels(path.relative_to(directory))
    }
    problems = [
        Problem(
            Code.HANDLER_FILES,
            Kind.VALUE,
            f"{script} has a {PROPERTIES_FILE} of its own",
            "Delete it, and say under `serving` what it says: it is written from the config.",
            field,
        )
        for name in files
        if name == PROPERTIES_FILE
    ]
    problems += [
        Problem(
            Code.SYMBOLIC_LINK,
            Kind.VALUE,
            f"{script}/{name} is a symbolic link",
            "Replace it with the file it points to (`cp -rL` copies a directory so).",
            field,
        )
        for name, path in files.items()
        if path.is_symlink()
    ]
    if problems:
        raise UserError(problems)
    return {name: path.read_bytes() for name, path in files.items()}


def require_plain_weights(files: Iterable[str]) -> None:
    """Checks weights whose directory is the model's: settings as variables leave no other.

    There the server reads settings, which count more than variables, runs what looks like a
    handler, and installs what a list of requirements names.
    """
    names = sorted(files)
    found = [name for name in names if _READ_BY_SERVER.fullmatch(name)]
    message = ""
    beside_folders = [name for name in names if "/" not in name and not name.startswith(".")]
    if all(name.endswith(_ARCHIVES) for name in beside_folders):
        message = "have no file beside their folders and archives, each of which DJL Serving "
        message += "would take for a model"
        remedy = "Choose the folder with config.json as the weights, or use `configuration: file`."
    elif found:
        message = f"have {', '.join(found)}, which DJL Serving would follow"
        remedy = (
            "Leave them out of the weights, or use `configuration: file`, which keeps settings "
        )
        remedy += "and weights apart."
    if message:
        raise UserError.of(
            Code.WEIGHTS_NOT_PLAIN,
            f"the weights {message}: with `configuration: environment` their directory is the "
            "model's",
            remedy,
            kind=Kind.COMPATIBILITY,
            field=("artifacts", "weights"),
        )


def _travels(path: Path) -> bool:
    return _CACHES.isdisjoint(path.parts) and not any(part.startswith(".") for part in path.parts)
