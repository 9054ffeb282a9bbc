"""Where the settings of an LMI model say that its weights are."""

from pathlib import Path

from slipway.errors import relative
from slipway.importing.draft import printable
from slipway.importing.lmi.source import LmiSource
from slipway.importing.weights import WeightsPlace, named_weights

WEIGHTS_KEYS = ("option.model_id", "option.s3url")
REVISION_KEY = "option.revision"


def weights_place(source: LmiSource, root: Path) -> WeightsPlace:
    """Returns where the settings say that the weights are."""
    key = next((key for key in WEIGHTS_KEYS if source.settings.get(key)), None)
    if key is None:
        return _beside(source, root)
    value, name = source.settings[key], source.name_of(key)
    shown = f"{name}={printable(value)}"
    if value.startswith(("/opt/ml/model", "./")) or value == ".":
        return _beside(source, root, shown)
    return named_weights(shown, value, source.settings.get(REVISION_KEY) or None)


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
