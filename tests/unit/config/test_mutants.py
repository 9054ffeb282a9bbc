"""Whatever is done to a config: a plan, or a report in which every problem has its place."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.plan_json import plan_as_json
from tests.support.mutants import (
    ENVIRONMENTS,
    FILE,
    every_field,
    golden_cases,
    mutants,
    plan_of,
    shipped_configs,
    with_value,
)

BASES = [*shipped_configs(), *golden_cases()]
SLOW_DISKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
IS_DEEP = settings.get_current_profile_name() == "deep"


def examples(count: int) -> settings:
    """The same few in every run; ten times as many, and others each time, in a deep one."""
    return settings(
        max_examples=count * 10 if IS_DEEP else count,
        derandomize=not IS_DEEP,
        deadline=None,
        suppress_health_check=SLOW_DISKS,
    )


def attempt(root: Path, raw: bytes, environment: Environment, stem: str = FILE) -> None:
    """Loads and plans; fails on anything but a plan or a report with places."""
    try:
        plan = plan_of(raw, stem, root, environment)
    except UserError as error:
        assert error.problems  # noqa: PT017  # a plan is as good
        for problem in error.problems:
            assert problem.location is not None
            assert problem.location.path == f"model_configs/{stem}.yaml"
            assert problem.message
            assert problem.remedy
    else:
        json.dumps(plan_as_json(plan), allow_nan=False)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_every_base_is_right(tmp_path, base):
    assert plan_of(base.raw, base.name, tmp_path, base.environment).config.name == base.name


@pytest.mark.parametrize("value", [{"name": "a"}, [None], "", None], ids=json.dumps)
def test_every_field_with_a_value_of_another_kind(tmp_path, value):
    fields = every_field(BASES)
    assert len(fields) > 200
    for base, path in fields:
        attempt(tmp_path, with_value(base, path, value).raw, base.environment)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@examples(30)
@given(mutant=mutants(BASES))
def test_a_config_with_a_changed_value(tmp_path, environment, mutant):
    attempt(tmp_path, mutant.raw, ENVIRONMENTS[environment], mutant.stem)


@examples(60)
@given(data=st.data())
def test_a_config_with_changed_text(tmp_path, data):
    base = data.draw(st.sampled_from(BASES))
    begin = data.draw(st.integers(0, len(base.raw)))
    end = data.draw(st.integers(begin, min(begin + 40, len(base.raw))))
    written = data.draw(
        st.one_of(st.binary(max_size=8), st.sampled_from([b"\r\n", b"\t", b": ", b"- ", b"&a *a"]))
    )
    attempt(tmp_path, base.raw[:begin] + written + base.raw[end:], base.environment)


@examples(50)
@given(raw=st.binary(max_size=200))
def test_anything_at_all(tmp_path, raw):
    attempt(tmp_path, raw, ENVIRONMENTS["local"])
