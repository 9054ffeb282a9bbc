"""Rules about serverless endpoints; most words are in the golden report `error_serverless`."""

import pytest
from pydantic import ValidationError

from slipway.config.sections.endpoint import Endpoint
from slipway.planning.cost import UsdPerMonth
from slipway.planning.families import deployment_of
from slipway.planning.resolve import known_problems
from slipway.planning.rules import exclusions, serverless
from slipway.sizing.performance import performance_of
from tests.support.golden_cases import make_plan
from tests.support.projects import LOCAL, NETWORKED, model_config
from tests.unit.planning.models import BERT, neuron
from tests.unit.planning.rule_findings import all_of, findings, refused_fields

SIZED = {"memory_size_mb": 2048, "max_concurrency": 5}
BARE = {"mode": "serverless", "serverless": SIZED, "network_isolation": False}


def found(**sections):
    """The codes of all problems of a config whose only endpoint settings are the given ones."""
    config = model_config(**sections)
    return [(each.code, each.message) for each in known_problems(deployment_of(config, LOCAL))]


def bare(**more):
    return Endpoint.model_validate({**BARE, **more})


def test_modes_exclude_settings():
    rule = all_of(exclusions.RULES)
    [problem, *_] = findings(rule, endpoint=BARE | {"instances": ["ml.g5.xlarge"]})
    assert problem == (
        "endpoint.instances",
        "`instances` and `mode: serverless` exclude each other: AWS chooses the machines, and none "
        "has a GPU",
        "Remove `instances`, or set `mode: realtime`.",
    )
    rule = all_of(exclusions.RULES)
    of_instances = refused_fields(rule, endpoint=BARE)
    variants = {"variants": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]}
    assert refused_fields(rule, endpoint=BARE | variants) == [*of_instances, "endpoint.variants"]
    shadow = {"shadow": {"sampling_percent": 50}, "volume_key_arn": None}
    assert refused_fields(rule, endpoint=BARE | shadow) == [*of_instances, "endpoint.shadow"]


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


def test_a_container_for_accelerators_is_refused():
    codes = found(model=BERT, serving=neuron(framework="neuronx"), endpoint=BARE)
    assert codes[0] == (
        "SW852",
        "the container `neuron` needs a GPU or NeuronCores, and a serverless endpoint has neither",
    )


def test_isolation_is_given_up_in_writing():
    rule = serverless.features_are_not_excluded
    open_ = {"endpoint": BARE}
    assert findings(rule, **open_) == []
    isolated = {"endpoint": BARE | {"network_isolation": True}}
    assert refused_fields(rule, **isolated) == ["endpoint.network_isolation"]
    assert refused_fields(rule, NETWORKED, **open_) == ["endpoint.mode"]


def test_nothing_is_guessed_of_its_cost(tmp_path):
    plan = make_plan("serverless", tmp_path)
    assert plan.cost.instances == UsdPerMonth(None, None, None)
    assert plan.cost.unknown == ("serverless",)
    assert performance_of(plan, None).reasons == ("nothing is known of serverless endpoints",)


def test_gpt2_and_images_of_ones_own_need_no_gpu():
    instances = {"SW850"}  # the config of these tests has an instance type
    release = {"release": {"path": "build/tiny", "target": "cpu"}}
    assert {code for code, _ in found(endpoint=BARE, artifacts=release)} == instances
    image = f"{LOCAL.account}.dkr.ecr.{LOCAL.region}.amazonaws.com/team/search:1"
    serving = {"container": "custom", "image_uri": image}
    assert {code for code, _ in found(endpoint=BARE, serving=serving)} == instances


def test_settings_of_plain_model_data_are_refused():
    rule = serverless.files_can_be_packed
    artifacts = {"release": {"path": "build/tiny", "target": "cpu"}, "accept_eula": True}
    assert refused_fields(rule, endpoint=BARE, artifacts=artifacts) == ["artifacts.accept_eula"]
