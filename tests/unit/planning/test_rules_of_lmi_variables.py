"""Settings as variables: each rule, what it says, word for word, and what it lets pass."""

import inspect
from typing import Any

import pytest

from slipway.planning.deployment import Rule
from slipway.planning.families.lmi.properties import variables
from slipway.planning.families.lmi.rules import options as lmi_options
from slipway.planning.families.lmi.rules import serving as lmi_variables
from slipway.planning.partial import rules_of
from tests.support.deployments import lmi as deployment
from tests.support.projects import model_config
from tests.unit.planning.lmi_findings import DEEPSPEED, NEURONX, TRTLLM, VLLM, sections
from tests.unit.planning.rule_findings import every_rule, findings, only


def found(rule: Rule, base: tuple[str, str], **serving: Any) -> list[tuple[str, str, str]]:
    given = {"configuration": "environment", **serving}
    return findings(rule, **sections(base, **given))


@pytest.mark.parametrize("base", [VLLM, TRTLLM, ("djl-lmi", "0.28.0")])
def test_a_config_of_a_living_image_breaks_no_rule(base: tuple[str, str]):
    given = {"options": {"max_model_len": 4096}, "environment": {"OMP_NUM_THREADS": "1"}}
    for rule in rules_of(lmi_variables):
        assert found(rule, base, **given) == [], rule.__name__


def test_a_file_is_not_looked_at():
    given = {
        "script": "mine", "options": {"a-b": "", "c": "x" * 2000},
        "environment": {"SERVING_RETRY_THRESHOLD": "3"},
    }  # fmt: skip
    for rule in rules_of(lmi_variables):
        assert found(rule, DEEPSPEED, configuration="file", **given) == [], rule.__name__


def test_every_rule_is_in_the_list():
    written = [
        function
        for name, function in inspect.getmembers(lmi_variables, inspect.isfunction)
        if function.__module__ == lmi_variables.__name__ and not name.startswith("_")
    ]
    assert set(written) == set(rules_of(lmi_variables))


@pytest.mark.parametrize("configuration", ["environment", "file"])
def test_partitioned_weights_bring_settings_of_their_own(configuration: str):
    artifacts = {
        "release": None,
        "weights": {"source": "s3", "uri": "s3://my-models/any/"},
        "compile": {"instance": "ml.g5.12xlarge"},
    }
    given = sections(TRTLLM, configuration=configuration)
    problems = findings(lmi_variables.weights_bring_no_settings, **given, artifacts=artifacts)
    assert (
        problems
        == [
            (
                "serving.configuration",
                "`compile` writes a serving.properties, which takes precedence over variables",
                "Use `configuration: file`, or remove `compile`.",
            )
        ][: configuration == "environment"]
    )


@pytest.mark.parametrize(
    ("base", "remedy"),
    [
        (DEEPSPEED, "Use `configuration: file`, or djl-lmi or djl-tensorrtllm from 0.28.0 on."),
        (NEURONX, "Use `configuration: file`, or djl-lmi or djl-tensorrtllm from 0.28.0 on."),
        (
            ("djl-tensorrtllm", "0.27.0"),
            "Use `configuration: file`, or version 0.28.0 or a later one.",
        ),
    ],
)
def test_an_older_image_is_refused(base: tuple[str, str], remedy: str):
    assert only(found(lmi_variables.image_reads_variables, base)) == (
        "serving.configuration",
        f"Slipway cannot pass settings as variables to {' '.join(base)}",
        remedy,
    )


@pytest.mark.parametrize("name", ["script", "requirements"])
def test_a_script_and_requirements_need_a_package(name: str):
    assert only(found(lmi_variables.script_has_a_package, VLLM, **{name: "mine"})) == (
        f"serving.{name}",
        f"`{name}` needs a package, and `configuration: environment` makes none",
        f"Use `configuration: file`, or remove `{name}`.",
    )


def test_options_have_variables():
    assert only(found(lmi_variables.options_have_variables, VLLM, options={"a-b": 1})) == (
        "serving.options.a-b",
        "no variable of djl-lmi 0.36.0 leads to the option 'a-b'",
        "Use `configuration: file`, or remove the option.",
    )
    rule = lmi_variables.options_have_variables
    assert only(found(rule, VLLM, options={"load_on_devices": "0"})) == (
        "serving.options.load_on_devices",
        "`load_on_devices` is a key of the server, and no variable of djl-lmi 0.36.0 is "
        "known for it",
        "Use `configuration: file`, or remove the option.",
    )
    assert found(rule, VLLM, options={"retry_threshold": 3}) == []
    assert only(found(lmi_variables.options_have_variables, VLLM, options={"task": ""})) == (
        "serving.options.task",
        "`task` is empty, and djl-lmi 0.36.0 ignores an empty variable",
        "Use `configuration: file`, or remove the option.",
    )
    assert only(found(rule, VLLM, options={"chat_template": "x" * 1025})) == (
        "serving.options.chat_template",
        "`chat_template` has 1025 characters, and a variable of a container has 1024 at most",
        "Use `configuration: file`.",
    )
    assert found(rule, VLLM, options={"chat_template": "x" * 1024}) == []


class TestNames:
    @pytest.mark.parametrize(
        "name", ["HF_MODEL_ID", "OPTION_DTYPE", "SERVING_JOB_QUEUE_SIZE", "OPTION_MAX_MODEL_LEN"]
    )
    def test_what_the_config_says_is_said_once(self, name: str):
        given = {"environment": {name: "1"}, "options": {"max_model_len": 4096}}
        problems = found(every_rule, VLLM, **given)
        assert [field for field, _, _ in problems] == [f"serving.environment.{name}"]

    def test_environment_leaves_the_file_alone(self):
        rule = lmi_options.environment_leaves_the_file_alone
        given = {"SERVING_RETRY_THRESHOLD": "3"}
        assert only(found(rule, VLLM, environment=given)) == (
            "serving.environment.SERVING_RETRY_THRESHOLD",
            "`SERVING_RETRY_THRESHOLD` is set already: without it one slow request would end "
            "the model",
            "Remove it.",
        )
        assert found(rule, VLLM, environment=given, configuration="file") == []
        own = variables(deployment(model_config(**sections(VLLM))).properties())
        for name in own:
            assert len(found(rule, VLLM, environment={name: "1"})) == 1, name
        assert only(found(rule, VLLM, environment={"OPTION_SEED": "1"})) == (
            "serving.environment.OPTION_SEED",
            "`OPTION_SEED` is an option that nothing checks",
            "Set `serving.options.seed` and remove the variable.",
        )
        assert only(found(rule, VLLM, environment={"SERVING_LOAD_MODELS": "a"})) == (
            "serving.environment.SERVING_LOAD_MODELS",
            "`SERVING_LOAD_MODELS` names models, beside the weights of `artifacts`",
            "Remove it: the weights are those of `artifacts`.",
        )

    def test_sagemaker_takes_a_hundred(self):
        rule = lmi_variables.variables_are_few
        few = {f"V{number}": "1" for number in range(90)}
        own = 8  # engine, degree, precision, trust, queue, retries, two time-outs
        assert found(rule, VLLM, environment=few) == []
        options = {f"extra_{number}": 1 for number in range(100 - 90 - own + 1)}
        assert only(found(rule, VLLM, environment=few, options=options)) == (
            "serving.configuration",
            "the container would have 101 variables; SageMaker takes 100",
            "Use `configuration: file`, or remove some.",
        )
