"""cfn-lint over many templates in one run: a run of its own for each reads every rule again."""

from collections.abc import Iterable
from pathlib import Path

from cfnlint.config import ConfigMixIn
from cfnlint.rules import Match
from cfnlint.runner import Runner


def lint(paths: Iterable[Path], region: str = "us-east-1") -> dict[Path, list[Match]]:
    """Returns what cfn-lint finds in each template: an empty list where it finds nothing."""
    found: dict[Path, list[Match]] = {path: [] for path in paths}
    config = ConfigMixIn(templates=[str(path) for path in found], regions=[region])
    for match in Runner(config).run():
        found[Path(str(match.filename))].append(match)
    return found
