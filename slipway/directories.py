"""Reads the directory that a model publishes as it is, for its family's check."""

import os
from pathlib import Path

from slipway.planning.directory import LARGEST_TEXT_BYTES, Directory, Findings
from slipway.planning.situation import Situation


def find_in_directory(project: Path, situation: Situation) -> Findings:
    """Returns what the family finds in the directory; nothing without the directory.

    Args:
        project: the folder that the directory's path is relative to.
        situation: of the model.
    """
    source = situation.published_directory
    if source is None or not situation.text_names:
        return Findings()
    root = project / source.path
    sizes_bytes, texts, empty = dict[str, int](), dict[str, bytes](), []
    for folder, folders, files in os.walk(root):
        within = Path(folder).relative_to(root)
        if not folders and not files and within.parts:
            empty.append(within.as_posix())
        for name in files:
            path, shown = Path(folder, name), (within / name).as_posix()
            try:
                sizes_bytes[shown] = path.stat().st_size
                if name in situation.text_names and sizes_bytes[shown] <= LARGEST_TEXT_BYTES:
                    texts[shown] = path.read_bytes()
            except OSError:
                # A broken link, which publishing reports.
                sizes_bytes.pop(shown, None)
    if not root.is_dir():
        return Findings()
    return situation.check_directory(
        Directory(source.path, source.field, sizes_bytes, texts, empty)
    )
