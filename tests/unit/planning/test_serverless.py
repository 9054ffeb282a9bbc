"""Serverless endpoints: instances they do not have, containers that run there, and their cost."""

import pytest
from pydantic import ValidationError

from slipway.config.sections.endpoint import Endpoint
from slipway.planning.cost import UsdPerMonth
from slipway.planning.families import deployment_of
from slipway.planning.resolve import known_problems
from slipway.sizing.performance import performance_of
from tests.support.golden_cases import make_plan
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.models import BERT, neuron

SIZED = {"memory_size_mb": 2048, "max_concurrency": 5}
BARE = {"mode": "serverless", "serverless": SIZED, "network_isolation": False}


def found(**sections):
    """Returns the codes of all problems of a config."""
    problems = known_problems(deployment_of(model_config(**sections), LOCAL))
    return {str(each.code) for each in problems}


def bare(**more):
    return Endpoint.model_validate({**BARE, **more})


def test_instances_are_needed_in_every_other_mode():
    assert bare().instances == ()
    for mode in ({}, {"mode": "async"}, {"mode": "nonsense"}):
        with pytest.raises(ValidationError) as caught:
            Endpoint.model_validate(mode)
        assert ("missing", ("instances",)) in [
            (each["type"], each["loc"]) for each in caught.value.errors()
        ]
    with pytest.raises(ValidationError, match="at least 1 item"):
        bare(instances=[])


def test_nothing_is_guessed_of_its_cost(tmp_path):
    plan = make_plan("serverless", tmp_path)
    assert plan.cost.instances == UsdPerMonth(None, None, None)
    assert plan.cost.unknown == ("serverless",)
    assert performance_of(plan, None).reasons == ("nothing is known of serverless endpoints",)


def test_containers_for_accelerators_are_refused_and_no_others():
    assert "SW852" in found(model=BERT, serving=neuron(framework="neuronx"), endpoint=BARE)
    instances = {"SW850"}  # the config of these tests has an instance type
    release = {"release": {"path": "build/tiny", "target": "cpu"}}
    assert found(endpoint=BARE, artifacts=release) == instances
    image = f"{LOCAL.account}.dkr.ecr.{LOCAL.region}.amazonaws.com/team/search:1"
    serving = {"container": "custom", "image_uri": image}
    assert found(endpoint=BARE, serving=serving) == instances
