"""What the import takes from names and from the steps of a policy, where nothing else says it."""

import pytest

from slipway.deployed.scaling import STEPS, step_loads
from slipway.importing.networks import family_of, parameters_of


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-2-13b", 13 * 10**9),
        ("opt-350m", 350 * 10**6),
        ("mixtral-8x7b", 56 * 10**9),
        ("Qwen/Qwen2.5-0.5B-Instruct", 500_000_000),
        ("llama-2-4bit", None),
        ("ranker", None),
    ],
)
def test_a_name_says_the_number_of_weights(name, parameters):
    assert parameters_of(name) == parameters


@pytest.mark.parametrize(
    ("name", "family"), [("Llama-2-13b", "llama"), ("mixtral-8x7b", None), ("ranker", None)]
)
def test_a_name_says_the_family(name, family):
    assert family_of(name) == family


def test_a_step_without_a_lower_bound_begins_at_the_threshold():
    steps = [
        {"ScalingAdjustment": 1, "MetricIntervalUpperBound": 50.0},
        {"ScalingAdjustment": 3, "MetricIntervalLowerBound": 50.0},
    ]
    policy = {STEPS: {"StepAdjustments": steps}}
    assert step_loads(policy, {"Threshold": 100.0}) == [(1, 100.0), (3, 150.0)]
