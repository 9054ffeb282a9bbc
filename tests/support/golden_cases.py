"""The cases of tests/golden: a config each, loaded and planned as a project would that has it."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from slipway.config.environments import Environment
from slipway.config.load import InvalidConfigError, LoadedConfig, config_for, read_config
from slipway.errors import UserError
from slipway.planning.families import deployment_of, known_deployment
from slipway.planning.lock import Lock
from slipway.planning.plan import DeploymentPlan, GuestPlan
from slipway.planning.plan_json import plan_as_json
from slipway.planning.resolve import known_problems, resolve
from slipway.planning.sharing import guest_plan
from tests.support.projects import (
    ENCRYPTED,
    IMAGE_DIGESTS,
    LOCAL,
    NETWORKED,
    PRODUCTION,
    lock_for,
)

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = GOLDEN / "cases"
ENVIRONMENTS = {each.name: each for each in (LOCAL, PRODUCTION, ENCRYPTED, NETWORKED)}
GOOD = sorted(path.stem for path in CASES.glob("*.yaml") if not path.stem.startswith("error_"))
BAD = sorted(path.stem for path in CASES.glob("error_*.yaml"))


def load(
    raw: bytes,
    stem: str,
    root: Path,
    environment: Environment,
    names: Collection[str],
    base: LoadedConfig | None = None,
) -> LoadedConfig:
    """Loads a config as a project would that keeps it in model_configs/."""
    path = root / "model_configs" / f"{stem}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    try:
        return config_for(environment.name, read_config(path, root), tuple(names), base=base)
    except InvalidConfigError as error:
        known = known_deployment(error.known, environment)
        raise error.joined_by(known_problems(known)) from None


def options_of(case: str) -> dict[str, str]:
    text = (CASES / f"{case}.yaml").read_text("utf-8")
    return dict(re.findall(r"^# ([a-z-]+): (\S+)$", text, re.MULTILINE))


def environment_of(case: str) -> Environment:
    return ENVIRONMENTS[options_of(case).get("environment", "local")]


def load_case(case: str, root: Path) -> LoadedConfig:
    raw, base = (CASES / f"{case}.yaml").read_bytes(), options_of(case).get("base")
    loaded = None if base is None else load_case(base, root)
    return load(raw, case.removeprefix("error_"), root, environment_of(case), ENVIRONMENTS, loaded)


def own_plans(
    loaded: LoadedConfig, environment: Environment, **options: Any
) -> dict[str, DeploymentPlan]:
    """Plans each variant that has its own model, as published."""
    plans = {}
    for name, own in loaded.variants.items():
        lock = lock_for(own.config, variant=name)
        with _located_in(own):
            deployment = deployment_of(own.config, environment, name)
            plans[name] = resolve(deployment, lock, IMAGE_DIGESTS, **options)
    return plans


def plan_loaded(
    loaded: LoadedConfig,
    environment: Environment,
    lock: Lock | None = None,
    *,
    allow_unpublished: bool = False,
    guests: Sequence[GuestPlan] = (),
) -> DeploymentPlan:
    """Plans a config, published unless the lock says otherwise."""
    options: dict[str, Any] = {"allow_unpublished": allow_unpublished}
    owns = own_plans(loaded, environment, **options)
    used = lock_for(loaded.config) if lock is None else lock
    with _located_in(loaded):
        deployment = deployment_of(loaded.config, environment)
        return resolve(deployment, used, IMAGE_DIGESTS, owns=owns, guests=guests, **options)


@contextmanager
def _located_in(loaded: LoadedConfig) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise UserError(loaded.locate(error.problems)) from None


def make_plan(case: str, root: Path) -> DeploymentPlan:
    """Plans a case; `root` is an empty folder for its project."""
    options = options_of(case)
    # A name: `make_plan` of the guest needs nothing of its host.
    guest = options.get("guests")
    return plan_loaded(
        load_case(case, root),
        environment_of(case),
        Lock() if options.get("lock") == "none" else None,
        guests=[guest_plan(make_plan(guest, root))] if guest else (),
        allow_unpublished=options.get("allow-unpublished") == "true",
    )


def without_unset(value: Any) -> Any:
    """Returns a plan's content without unset fields: a new optional field changes no other case."""
    if isinstance(value, dict):
        return {key: without_unset(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_unset(item) for item in value]
    return value


def plan_content(case: str) -> dict[str, Any]:
    with TemporaryDirectory() as root:
        content: dict[str, Any] = without_unset(plan_as_json(make_plan(case, Path(root))))
    return content
