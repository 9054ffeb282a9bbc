"""A checkpoint of Hugging Face's form: in a folder of the project, or on the Hub."""

from dataclasses import replace
from pathlib import Path

from slipway.codes.code import Code
from slipway.config.checkpoint import CheckpointFacts
from slipway.errors import Kind, UserError, relative
from slipway.importing.draft import KnownFacts
from slipway.importing.weights import WeightsPlace
from slipway.planning.deployment import ENCODERS
from slipway.publishing.file_set import checkpoint_facts, directory_files
from slipway.publishing.hub import hub_facts
from slipway.publishing.selection import loaded_files


def checkpoint_place(checkpoint: str, root: Path) -> WeightsPlace:
    """Returns the place of a checkpoint, a folder or `OWNER/NAME[@REVISION]`, and its facts.

    Raises `UserError` if the Hub does not have it or does not answer, or the folder has none.
    """
    if not Path(checkpoint).is_dir():
        return named_hub_place(checkpoint)
    directory = Path(checkpoint).resolve()
    if not (directory / "config.json").is_file():
        raise UserError.of(
            Code.IMPORT_UNREADABLE,
            f"{checkpoint} has no config.json",
            "Name the folder of a checkpoint as `save_pretrained` of Hugging Face writes it.",
        )
    place = folder_place(directory, checkpoint)
    if not directory.is_relative_to(root.resolve()):
        return replace(place, missing=f"{checkpoint} is not in the project")
    path = relative(directory, root.resolve())
    return replace(place, section={"source": "path", "path": path})


def folder_place(directory: Path, shown: str) -> WeightsPlace:
    """Returns what a checkpoint's files in a folder say; raises `UserError` if one is damaged."""
    names = [path.name for path in directory.iterdir() if path.is_file()]
    files = directory_files(directory, shown, names)
    size_bytes = sum(files.sizes_bytes[path] for path in loaded_files(files) & set(names))
    facts = checkpoint_facts(files)
    unread = _untold(shown, facts)
    return WeightsPlace(shown, facts=facts, size_gb=_size_gb(size_bytes), unread=unread)


def _untold(shown: str, facts: CheckpointFacts) -> str:
    """Returns why files do not tell family or number of weights, as `WeightsPlace.unread`."""
    if facts.family is None or facts.parameters is not None:
        return "" if facts.family else f"{shown} has no config.json with a model_type"
    return f"{shown} has neither a model.safetensors nor an index of weights"


def named_hub_place(name: str) -> WeightsPlace:
    """Returns the place that `OWNER/NAME[@REVISION]` names; raises `UserError` as `hub_place`."""
    repository, _, revision = name.removeprefix("hub:").partition("@")
    try:
        return hub_place(WeightsPlace(repository, repository=repository, revision=revision or None))
    except UserError as error:
        # No config has a field yet that a message could name.
        raise UserError(replace(each, field=()) for each in error.problems) from None


def require_generator(given: KnownFacts, place: WeightsPlace) -> None:
    """Raises `UserError` for an encoder, which the proposed container does not serve."""
    if given.family not in ENCODERS:
        return
    section = place.section or {}
    weights = section.get("path") or f"hub:{section.get('repository')}@{section.get('revision')}"
    size = f" --parameters {given.parameters}" if given.parameters else ""
    raise UserError.of(
        Code.IMPORT_ENCODER,
        f"{place.name} is an encoder of the family {given.family}, and answers with no text",
        f"Run `slipway init {given.name} --container neuron --weights {weights} --family "
        f"{given.family}{size}`, or the same with `--container tensorrt`.",
        kind=Kind.COMPATIBILITY,
    )


def hub_place(place: WeightsPlace) -> WeightsPlace:
    """Returns the place of weights on the Hub with their commit, and what their files say.

    Raises `UserError` if the Hub does not have it, does not let us, or does not answer.
    """
    repository = place.repository or ""
    found = hub_facts(repository, place.branch)
    section = {"source": "hub", "repository": repository, "revision": found.commit}
    return replace(
        place, section=section, facts=found.checkpoint, size_gb=found.size_gb or None,
        unread=_untold(repository, found.checkpoint),
    )  # fmt: skip


def _size_gb(size_bytes: int) -> float | None:
    """Returns a size as configs have it; None for a size that rounds to nothing."""
    return round(size_bytes / 1e9, 3) or None
