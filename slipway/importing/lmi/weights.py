"""Where the settings of an LMI model say that its weights are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.errors import relative
from slipway.importing.draft import printable
from slipway.importing.lmi.source import LmiSource

WEIGHTS_KEYS = ("option.model_id", "option.s3url")
REVISION_KEY = "option.revision"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
# `{{model_id}}` of a notebook's template, `<bucket>`, `$BUCKET`.
_PLACEHOLDER = re.compile(r"[{}<>$]")


@dataclass(frozen=True)
class WeightsPlace:
    """The weights, as far as the settings tell.

    Args:
        name: the setting that names them, with its value; for guesses and messages.
        section: `artifacts.weights`; None if something is missing.
        repository: repository of the Hub whose commit is not known.
        revision: branch or tag of it that the settings name.
        missing: why there is no section, as half a sentence.
    """

    name: str
    section: Mapping[str, str] | None = None
    repository: str | None = None
    revision: str | None = None
    missing: str = ""


def weights_place(source: LmiSource, root: Path) -> WeightsPlace:
    """Returns where the settings say that the weights are.

    Args:
        source: the settings.
        root: the project.
    """
    key = next((key for key in WEIGHTS_KEYS if source.settings.get(key)), None)
    if key is None:
        return _beside(source, root)
    value, name = source.settings[key], source.name_of(key)
    shown = f"{name}={printable(value)}"
    if _PLACEHOLDER.search(value):
        return WeightsPlace(shown, missing=f"`{shown}` is a placeholder")
    if value.startswith("s3://"):
        bucket, _, prefix = value.removeprefix("s3://").partition("/")
        uri = f"s3://{bucket}/{prefix.rstrip('/')}/" if prefix.strip("/") else f"s3://{bucket}/"
        return WeightsPlace(shown, {"source": "s3", "uri": uri})
    if value.startswith(("/opt/ml/model", "./")) or value == ".":
        return _beside(source, root, shown)
    if not _REPOSITORY.fullmatch(value):
        return WeightsPlace(shown, missing=f"`{shown}` is neither in S3 nor on the Hub")
    revision = source.settings.get(REVISION_KEY) or None
    if revision is not None and _COMMIT.fullmatch(revision):
        section = {"source": "hub", "repository": value, "revision": revision}
        return WeightsPlace(shown, section)
    return WeightsPlace(
        shown,
        repository=value,
        revision=revision,
        missing=f"`{shown}` names no commit",
    )


def _beside(source: LmiSource, root: Path, shown: str = "") -> WeightsPlace:
    """Returns the place of weights in the folder itself."""
    keys = " or ".join(f"`{source.name_of(key)}`" for key in WEIGHTS_KEYS)
    what = f"`{shown}` is a folder of the package" if shown else f"there is no {keys}"
    if source.directory is None:
        return WeightsPlace(shown, missing=what)
    if not source.has_checkpoint:
        return WeightsPlace(shown, missing=f"{what}, and {source.origin} has no weights beside it")
    directory = source.directory.resolve()
    if not directory.is_relative_to(root.resolve()):
        return WeightsPlace(
            shown, missing=f"{what}, and the weights beside {source.origin} are not in the project"
        )
    path = relative(directory, root.resolve())
    return WeightsPlace(shown or path, {"source": "path", "path": path})
