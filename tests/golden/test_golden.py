"""Cases: a config, and exactly the plan and the template, or the report, that come of it.

`cases/NAME.yaml` -> `plans/NAME.json` -> `templates/NAME.json`;
`cases/error_NAME.yaml` -> `errors/error_NAME.txt`. Comments at the head of a case choose its
environment (`# environment: production`), its lock (`# lock: none`, `# lock: stale`), and the case
whose copies run on its endpoint (`# guests: guest`).
`pytest tests/golden --update-golden` writes the results anew.
"""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cfnlint.rules import Match

from slipway.config.environments import Environment
from slipway.config.load import InvalidConfigError, LoadedConfig, load_config
from slipway.errors import UserError
from slipway.facts.instances import instance_types
from slipway.planning.families import known_situation
from slipway.planning.lock import Lock, LockedArtifact
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resolve import known_problems, resolve
from slipway.planning.sharing import guest_plan
from stacks.artifacts_stack import ArtifactsStack
from stacks.assembly import plan_stack
from stacks.constructs.foundation_guard import FOUNDATION_VERSION
from stacks.foundation_stack import FoundationStack
from tests.support.linting import lint
from tests.support.projects import (
    DIGEST,
    ENCRYPTED,
    IMAGE_DIGESTS,
    LOCAL,
    NETWORKED,
    PRODUCTION,
    lock_for,
)

HERE = Path(__file__).parent
CONTEXT = json.loads((HERE.parents[1] / "cdk.json").read_text("utf-8"))["context"]
ENVIRONMENTS = {each.name: each for each in (LOCAL, PRODUCTION, ENCRYPTED, NETWORKED)}
CASES = sorted((HERE / "cases").glob("*.yaml"))
GOOD = [path.stem for path in CASES if not path.stem.startswith("error_")]
ISOLATED = [case for case in GOOD if case.startswith("isolated")]
FOUNDATIONS = {"foundation": PRODUCTION, "foundation-network": NETWORKED}
STACKS = [*GOOD, *(f"artifacts-{case}" for case in ISOLATED), *FOUNDATIONS]
BAD = [path.stem for path in CASES if path.stem.startswith("error_")]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with a golden file, or writes it."""

    def compare(name: str, text: str) -> None:
        path = HERE / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text("utf-8")

    return compare


def load_case(case: str, root: Path) -> tuple[LoadedConfig, Environment, dict[str, str]]:
    """Loads a case as a project would that keeps it in model_configs/, and its comments."""
    text = (HERE / "cases" / f"{case}.yaml").read_text("utf-8")
    options = dict(re.findall(r"^# ([a-z-]+): (\S+)$", text, re.MULTILINE))
    environment = ENVIRONMENTS[options.get("environment", "local")]
    path = root / "model_configs" / f"{case.removeprefix('error_')}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    try:
        loaded = load_config(path, root, environment.name, tuple(ENVIRONMENTS))
    except InvalidConfigError as error:
        known = known_situation(error.known, environment, instance_types())
        raise error.joined_by(known_problems(known)) from None
    return loaded, environment, options


def make_plan(case: str, root: Path) -> DeploymentPlan:
    """Plans a case."""
    loaded, environment, options = load_case(case, root)
    lock = lock_for(loaded.config)
    if options.get("lock") == "none":
        lock = Lock()
    elif options.get("lock") == "stale":
        sample = lock.sample
        assert sample is not None
        lock = Lock(sample=LockedArtifact(inputs_digest=DIGEST, compiled=sample.compiled))
    # A name: `make_plan` of the guest needs nothing of its host.
    guest = options.get("guests")
    try:
        return resolve(
            loaded.config,
            instance_types(),
            environment,
            lock,
            IMAGE_DIGESTS,
            guests=[guest_plan(make_plan(guest, root))] if guest else (),
            allow_unpublished=options.get("allow-unpublished") == "true",
        )
    except UserError as error:
        raise UserError(loaded.locate(error.problems)) from None


def without_unset(value: Any) -> Any:
    """Returns a plan's content without unset fields: a new optional field changes no other case."""
    if isinstance(value, dict):
        return {key: without_unset(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_unset(item) for item in value]
    return value


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every good case's template and the foundations', from one synthesis."""
    output = tmp_path_factory.mktemp("cdk.out")
    # The checks of the templates are tests of their own, and slow.
    app = cdk.App(
        outdir=str(output),
        context=CONTEXT,
        analytics_reporting=False,
        builtin_cloud_formation_validation=False,
    )
    for case in GOOD:
        plan = make_plan(case, tmp_path_factory.mktemp(case))
        target = cdk.Environment(account=plan.account, region=plan.region)
        plan_stack(app, case, plan=plan, env=target)
        if case in ISOLATED:
            loaded, environment, _ = load_case(case, tmp_path_factory.mktemp(case))
            ArtifactsStack(
                app,
                plan.artifact_place.stack_id,
                config=loaded.config,
                environment=environment,
                env=target,
            )
    target = cdk.Environment(account=PRODUCTION.account, region=PRODUCTION.region)
    for name, environment in FOUNDATIONS.items():
        FoundationStack(app, name, environment=environment, env=target)
    app.synth()
    return {name: output / f"{name}.template.json" for name in STACKS}


@pytest.fixture(scope="module")
def findings(templates: dict[str, Path]) -> dict[Path, list[Match]]:
    return lint(templates[case] for case in STACKS)


@pytest.mark.parametrize("case", GOOD)
def test_plan(case: str, tmp_path: Path, golden: Callable[[str, str], None]):
    content = without_unset(make_plan(case, tmp_path).as_json())
    golden(f"plans/{case}.json", json.dumps(content, indent=2) + "\n")


@pytest.mark.parametrize("case", STACKS)
def test_template(case: str, templates: dict[str, Path], golden: Callable[[str, str], None]):
    golden(f"templates/{case}.json", templates[case].read_text("utf-8") + "\n")


def test_the_foundations_version_is_that_of_its_template(
    templates: dict[str, Path], golden: Callable[[str, str], None]
):
    """Where this fails, raise FOUNDATION_VERSION if a release or a branch has the version already.

    The guard of the foundation compares versions alone, and takes two templates of one for equal.
    """
    digest = hashlib.sha256(templates["foundation"].read_bytes()).hexdigest()
    content = {"version": FOUNDATION_VERSION, "template": digest}
    golden("foundation-version.json", json.dumps(content, indent=2) + "\n")


@pytest.mark.size("all")
@pytest.mark.parametrize("case", STACKS)
def test_cfn_lint_finds_nothing(
    case: str, templates: dict[str, Path], findings: dict[Path, list[Match]]
):
    assert [str(match) for match in findings[templates[case]]] == []


@pytest.mark.parametrize("case", BAD)
def test_report(case: str, tmp_path: Path, golden: Callable[[str, str], None]):
    with pytest.raises(UserError) as caught:
        make_plan(case, tmp_path)
    golden(f"errors/{case}.txt", f"{caught.value}\n")


def test_every_golden_file_has_its_case():
    found = {
        path.relative_to(HERE).as_posix()
        for folder in ("plans", "templates", "errors")
        for path in (HERE / folder).iterdir()
    }
    assert found == {
        *(f"plans/{case}.json" for case in GOOD),
        *(f"templates/{case}.json" for case in STACKS),
        *(f"errors/{case}.txt" for case in BAD),
    }
