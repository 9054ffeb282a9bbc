"""Whatever is done to a config: a plan, or a report in which every problem has its place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.config.load import load_config
from slipway.errors import UserError
from slipway.facts.instances import instance_types
from slipway.planning.resolve import resolve
from tests.unit.projects import IMAGE_DIGESTS, LOCAL, PRODUCTION, lock_for

CASES = Path(__file__).parents[2] / "golden" / "cases"
GOOD = sorted(path for path in CASES.glob("*.yaml") if not path.stem.startswith("error_"))
ENVIRONMENTS = {"local": LOCAL, "production": PRODUCTION}
SLOW_DISKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(10**6, 10**30),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=12),
    st.sampled_from(["ml.g5.xlarge", "ml.inf1.xlarge", "600", "s3://b/", "lmi", "async", "canary"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=5)), max_size=7),
    st.dictionaries(st.text(max_size=6), st.integers(), max_size=3),
)


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = content.items() if isinstance(content, dict) else enumerate(content)
    if isinstance(content, (dict, list)):
        for key, value in items:
            found += (
                places(value, (*path, key)) if isinstance(value, (dict, list)) else [(*path, key)]
            )
    return found


def attempt(root: Path, raw: bytes, environment: str) -> None:
    """Loads and plans; fails on anything but a plan or a report with places."""
    path = root / "model_configs" / "mutant.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    loaded = None
    try:
        loaded = load_config(path, root, environment, tuple(ENVIRONMENTS))
        plan = resolve(
            loaded.config,
            instance_types(),
            ENVIRONMENTS[environment],
            lock_for(loaded.config),
            IMAGE_DIGESTS,
            allow_unpublished=True,
        )
    except UserError as error:
        assert error.problems  # noqa: PT017  # a plan is as good
        located = loaded.locate(error.problems) if loaded else error.problems
        for problem in located:
            assert problem.location is not None
            assert problem.location.path == "model_configs/mutant.yaml"
            assert problem.message
            assert problem.remedy
    else:
        json.dumps(plan.as_json(), allow_nan=False)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW_DISKS)
@given(data=st.data())
def test_a_config_with_a_changed_value(tmp_path: Path, environment: str, data: st.DataObject):
    content = copy.deepcopy(yaml.safe_load(data.draw(st.sampled_from(GOOD)).read_text("utf-8")))
    content["name"] = "mutant"
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from(places(content)))
        section = content
        for parent in parents:
            section = section[parent]
        match data.draw(st.sampled_from(["delete", "replace", "add"])):
            case "delete":
                del section[last]
            case "replace":
                section[last] = data.draw(VALUES)
            case "add" if isinstance(section, dict):
                section[data.draw(st.text(min_size=1, max_size=8))] = data.draw(VALUES)
        if not places(content):
            break
    attempt(tmp_path, yaml.safe_dump(content, allow_unicode=True).encode(), environment)


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW_DISKS)
@given(data=st.data())
def test_a_config_with_changed_text(tmp_path: Path, data: st.DataObject):
    raw = data.draw(st.sampled_from(GOOD)).read_bytes()
    begin = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(begin, min(begin + 40, len(raw))))
    written = data.draw(
        st.one_of(st.binary(max_size=8), st.sampled_from([b"\r\n", b"\t", b": ", b"- ", b"&a *a"]))
    )
    attempt(tmp_path, raw[:begin] + written + raw[end:], "local")


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW_DISKS)
@given(raw=st.binary(max_size=200))
def test_anything_at_all(tmp_path: Path, raw: bytes):
    attempt(tmp_path, raw, "local")
