"""Makes a project of many configs, all valid and no two the same.

The templates are the configs that the project ships, so that a family is measured as soon as it has
one. Other families have files in `templates/`. Names and numbers vary. A number only grows, because
a number that is large enough in the template stays large enough.
"""

import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from demo import copy_project
from slipway.config.names import CONFIG_DIRECTORY, ENVIRONMENTS_FILE

_OWN_TEMPLATES = Path(__file__).with_name("templates")
_SECOND_ENVIRONMENT = """
benchmark:
  account: "210987654321"
  region: us-west-2
"""


@dataclass(frozen=True)
class Template:
    name: str
    text: str
    lock: str | None


@dataclass(frozen=True)
class _Growth:
    """The growth of a number: its most steps, and its largest value in the schema."""

    step: int
    steps: int
    most: int


_VARIED: Mapping[str, _Growth] = {
    "container_startup_health_check_timeout_seconds": _Growth(60, 20, 3600),
    "model_data_download_timeout_seconds": _Growth(60, 20, 3600),
    "model_latency_p99_milliseconds": _Growth(10, 50, 60_000),
    "max_instance_count": _Growth(1, 8, 1000),
    "target_concurrent_requests_per_instance": _Growth(1, 16, 1000),
    "target_invocations_per_instance_per_minute": _Growth(60, 20, 100_000),
    "scale_in_cooldown_seconds": _Growth(60, 10, 3600),
}
_NUMBER = re.compile(rf"^(\s+({'|'.join(_VARIED)}): )(\d+)$", re.M)
_DESCRIPTION = re.compile(r"^(description: .*)$", re.M)


def find_templates(project: Path) -> list[Template]:
    """Returns the project's own configs, and this package's configs of families without one."""
    paths = sorted((project / CONFIG_DIRECTORY).glob("*.yaml"))
    shipped = {path.stem for path in paths}
    paths += [path for path in sorted(_OWN_TEMPLATES.glob("*.yaml")) if path.stem not in shipped]
    templates = []
    for path in paths:
        text, lock = path.read_text("utf-8"), path.with_name(f"{path.stem}.lock.json")
        if len(_name_line(path.stem).findall(text)) != 1:
            raise BenchmarkError(f"{path.name} has no line `name: {path.stem}` to vary")
        templates.append(
            Template(path.stem, text, lock.read_text("utf-8") if lock.is_file() else None)
        )
    return templates


def variation(template: Template, number: int, seed: int) -> tuple[str, str]:
    # Random numbers of an experiment, not of a secret.
    generator = random.Random(f"{seed} {template.name} {number}")  # noqa: S311
    name = f"{template.name}-{number:04}"

    def grown(match: re.Match[str]) -> str:
        growth = _VARIED[match[2]]
        value = int(match[3]) + growth.step * generator.randint(0, growth.steps)
        return f"{match[1]}{max(int(match[3]), min(value, growth.most))}"

    text = _name_line(template.name).sub(f"name: {name}", template.text)
    text = _DESCRIPTION.sub(rf"\1 (copy {number})", text, count=1)
    return name, _NUMBER.sub(grown, text)


def write_project(
    folder: Path, templates: list[Template], config_count: int, seed: int
) -> dict[str, str]:
    """Writes a project of configs made of the templates in turn; returns the first of each."""
    copy_project(folder)
    environments = folder / ENVIRONMENTS_FILE
    environments.write_text(environments.read_text("utf-8") + _SECOND_ENVIRONMENT, "utf-8")
    configs = folder / CONFIG_DIRECTORY
    shutil.rmtree(configs)
    configs.mkdir()
    first: dict[str, str] = {}
    for number in range(config_count):
        template = templates[number % len(templates)]
        name, text = variation(template, number, seed)
        first.setdefault(template.name, name)
        (configs / f"{name}.yaml").write_text(text, "utf-8")
        if template.lock is not None:
            (configs / f"{name}.lock.json").write_text(template.lock, "utf-8")
    return first


def change_one(folder: Path, name: str) -> None:
    settings = ("user.name=benchmark", "user.email=benchmark@example.com", "commit.gpgsign=false")
    options = [word for each in settings for word in ("-c", each)]
    for step in (["init"], ["add", "--all"], ["commit", "--message=base"]):
        subprocess.run(  # noqa: S603  # no shell
            ["git", "-C", str(folder), *options, *step],  # noqa: S607  # the user's git
            check=True,
            capture_output=True,
        )
    path = folder / CONFIG_DIRECTORY / f"{name}.yaml"
    path.write_text(_DESCRIPTION.sub(r"\1, changed", path.read_text("utf-8"), count=1), "utf-8")


def _name_line(name: str) -> re.Pattern[str]:
    return re.compile(rf"^name: {re.escape(name)}$", re.M)
