"""Publishing for LMI: a package beside the weights, and a check of partitioned weights."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from slipway.planning.deployment import Deployment
from slipway.planning.families.lmi.deployment import Lmi
from slipway.publishing.adapters import check_packaged
from slipway.publishing.families.lmi.package import (
    LmiPackage,
    lmi_package,
    require_plain_weights,
    script_files,
)
from slipway.publishing.families.lmi.parts import parts_inspection
from slipway.publishing.file_set import CONFIG, TOKENIZER, WEIGHTS, FileSet
from slipway.publishing.packaging import Inspection, Packaging


class LmiPackaging(Packaging):
    """An LMI artifact: serving.properties and model.py, unless variables hold the settings."""

    def read(self, deployment: Deployment, root: Path) -> Mapping[str, bytes]:
        """Returns the files of the user's directory: a model.py, or requirements.txt."""
        return script_files(_lmi(deployment).serving, root) if deployment.has_code else {}

    def directory(self, deployment: Deployment) -> str | None:
        serving = _lmi(deployment).serving
        return (serving.script or serving.requirements) if deployment.has_code else None

    def inspection(self, deployment: Deployment) -> Inspection | None:
        return parts_inspection(_lmi(deployment))

    def needs(self, deployment: Deployment) -> Collection[str]:
        """Returns what a built-in handler loads; a model.py may load anything."""
        serving = _lmi(deployment).serving
        if serving.script is not None:
            return ()
        own = {"skip_tokenizer_init", "tokenizer"}.isdisjoint(serving.options)
        return (CONFIG, WEIGHTS, TOKENIZER) if own else (CONFIG, WEIGHTS)

    def loads_any(self, deployment: Deployment) -> bool:
        """Returns whether a model.py or an option names what is loaded."""
        named = _lmi(deployment).serving.options.get("load_format", "auto")
        return super().loads_any(deployment) or named not in ("auto", "safetensors")

    def check_weights(self, files: Iterable[str]) -> None:
        """Refuses weights with settings or handlers of their own."""
        require_plain_weights(files)

    def check_adapters(self, deployment: Deployment, files: FileSet) -> None:
        """Refuses folders of `adapters/` that vLLM does not load."""
        check_packaged(deployment, files)

    def package(
        self, deployment: Deployment, files: Mapping[str, bytes], digest: str
    ) -> LmiPackage | None:
        """Returns the package; None if variables hold the settings."""
        return lmi_package(_lmi(deployment), files, digest) if deployment.has_code else None


def _lmi(deployment: Deployment) -> Lmi:
    if not isinstance(deployment, Lmi):
        raise TypeError(
            f"{deployment.config.name} is served by the container {deployment.container}"
        )
    return deployment
