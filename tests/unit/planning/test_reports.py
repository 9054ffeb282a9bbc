"""What each rule and each advice says of a config, as a user reads it: `reports/MODULE.txt`.

A heading names a function of the module, or `all` of them. Each line below it is a config: what it
begins with, names of `SETTINGS`, its environment unless it is `local`, and in YAML what is
different. The problems and the advice of the function follow. A config without them is right.
`pytest tests/unit/planning/test_reports.py --update-golden` writes what is said anew.
"""

import functools
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.config.environments import Environment
from slipway.errors import Kind, Problem
from slipway.planning import advice
from slipway.planning.deployment import Deployment
from slipway.planning.families import deployment_of
from slipway.planning.partial import rules_of
from slipway.planning.plan import ArtifactPlan
from tests.support.projects import DIGEST, LOCAL, NETWORKED, PRODUCTION, model_config
from tests.unit.planning.models import NEURON

REPORTS = {path.stem: path for path in (Path(__file__).parent / "reports").iterdir()}
ENVIRONMENTS = {each.name: each for each in (LOCAL, PRODUCTION, NETWORKED)}
SETTINGS = yaml.safe_load((Path(__file__).parent / "settings.yaml").read_text("utf-8"))
CASE = re.compile(r"(?P<base>[^{]+?)(?: in (?P<environment>[a-z0-9-]+))?(?: (?P<more>\{.*\}))?")


def base(name: str) -> dict[str, Any]:
    """Returns sections that break no rule of their container."""
    container, _, version = name.partition(" ")
    if container.startswith("djl-"):
        image = {"container": "lmi", "framework": container, "version": version, "dtype": "fp32"}
        instance = "ml.inf2.48xlarge" if container == "djl-neuronx" else "ml.g5.12xlarge"
        endpoint = {
            "instances": [instance],
            "container_startup_health_check_timeout_seconds": 1200,
            "network_isolation": False,
        }
        return {"serving": image, "endpoint": endpoint}
    encoder = {"model": {"family": "bert", "parameters": 110_000_000}}
    tokens = {"max_input_tokens": 64, "max_new_tokens": 64}
    registry = f"{LOCAL.account}.dkr.ecr.{LOCAL.region}.amazonaws.com"
    return {
        "tensorrt": {},
        "neuron": encoder | {"serving": NEURON},
        "neuronx": encoder | {"serving": NEURON | {"framework": "neuronx"}},
        "custom": {"serving": {"container": "custom", "image_uri": f"{registry}/search:1.4.2"}},
        "triton": {"serving": {"container": "triton", "version": version, **tokens}},
    }[container]


def environment(name: str) -> Environment:
    """Returns an environment by its name, or one in a region."""
    if name in ENVIRONMENTS:
        return ENVIRONMENTS[name]
    return Environment(name="elsewhere", account=LOCAL.account, region=name)


def merged(content: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings with others laid over them; another container replaces its section."""
    found = dict(content)
    for name, value in more.items():
        is_whole = not isinstance(value, dict) or "container" in value
        found[name] = value if is_whole else merged(found.get(name) or {}, value)
    return found


def said(functions: Iterable[Any], case: str) -> Iterator[str]:
    parts = CASE.fullmatch(case)
    assert parts, case
    more = yaml.safe_load(parts["more"] or "{}")
    published_gb = more.pop("published_gb", None)
    begin, *names = parts["base"].split(", ")
    sections = functools.reduce(merged, [*(SETTINGS[name] for name in names), more], base(begin))
    config = model_config(**sections)
    deployment = deployment_of(config, environment(parts["environment"] or "local"))
    for function in functions:
        is_of_plan = function.__module__ == advice.__name__
        asked = subject(deployment, published_gb) if is_of_plan else deployment
        for item in function(asked):
            if isinstance(item, Problem):
                assert item.kind is Kind.COMPATIBILITY
                yield from f"- {item}".splitlines()
            else:
                yield f"- {item.code}: {item.message}"


def subject(deployment: Deployment, published_gb: float | None) -> advice.Subject:
    """Returns what advice about a plan is given; LMI's release has settings beside its weights."""
    size, published = int((published_gb or 0) * 1e9), published_gb is not None
    files = ArtifactPlan("bucket", DIGEST, size, 1, "cpu", published=published)
    if deployment.container == "lmi" and deployment.deploys_release:
        return advice.Subject(deployment, replace(files, size_bytes=500), files)
    return advice.Subject(deployment, files)


def is_case(line: str) -> bool:
    return bool(line) and not line.startswith(("#", "- ", "    "))


def written(module: str, text: str) -> str:
    """Returns a report with the present problems and advice of its configs."""
    source = importlib.import_module(f"slipway.planning.{module}")
    lines: list[str] = []
    functions = rules_of(source)
    for line in text.splitlines():
        if line.startswith("## "):
            name = line.removeprefix("## ")
            functions = rules_of(source) if name == "all" else (getattr(source, name),)
        if line.startswith(("- ", "    ")):
            continue
        lines.append(line)
        if is_case(line):
            lines += said(functions, line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("module", REPORTS)
def test_what_is_said_of_configs(module: str, request: pytest.FixtureRequest):
    path = REPORTS[module]
    found = written(module, path.read_text("utf-8"))
    if request.config.getoption("--update-golden"):
        path.write_text(found, "utf-8")
    assert found.splitlines() == path.read_text("utf-8").splitlines()
