"""The wording of messages that no golden report has: the bad value, what is allowed, what to do."""

import pytest
import yaml
from pydantic import ValidationError

from slipway.config.messages import _TEXTS, describe
from slipway.config.schema import ModelConfig
from slipway.config.sections.model import Model
from slipway.errors import Kind
from tests.support.projects import CONFIG

NAME_FORM = "^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
NAME_EXAMPLE = 'Example: `name: "gpt2-autocomplete"`.'


def custom_serving(environment: dict[str, str]) -> dict[str, object]:
    uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2"
    return {"container": "custom", "image_uri": uri, "environment": environment}


def lmi_serving(options: dict[str, object]) -> dict[str, object]:
    image = {"framework": "djl-lmi", "version": "0.36.0"}
    return {"container": "lmi", **image, "dtype": "bf16", "options": options}


# field to change, value to give it (or `...` to leave it out), kind, message, remedy
CASES = [
    ("model.colour", "red", Kind.SHAPE, "unknown field",
     f"Allowed here: {', '.join(sorted(Model.model_fields))}."),
    ("model", "gpt2", Kind.SHAPE, '"gpt2" is not a mapping', "Write a mapping."),
    ("model", None, Kind.SHAPE, "null is not a mapping", "Write a mapping."),
    ("model.parameters", True, Kind.SHAPE, "true is not a whole number",
     "Write a whole number. Example: `parameters: 1557611200`."),
    ("alarms.server_error_rate_percent", "1", Kind.SHAPE, '"1" is not a number',
     "Write the number without quotes. Example: `server_error_rate_percent: 1.0`."),
    ("description", 5, Kind.SHAPE, "5 is not a text",
     'Put the value in quotes. Example: `description: "Search autocomplete with GPT-2"`.'),
    ("tags", {"team": 5}, Kind.SHAPE, "5 is not a text", "Put the value in quotes."),
    ("tags", {"aws:x": "1"}, Kind.VALUE, '"aws:x" is a reserved key',
     "Use a key without `slipway:` or `aws:` in front."),
    ("tags", {"R&D": "1"}, Kind.VALUE, '"R&D" has the character "&", which tags cannot have',
     "Use letters, digits, spaces and _ . : / = + - @"),
    ("tags", {"Team": "1", "team": "2"}, Kind.VALUE,
     "\"Team\" and \"team\" are one tag: IAM's keys are not case sensitive",
     'Keep one of them. Example: `tags: {"team": "search"}`.'),
    ("description", "a\x93", Kind.VALUE,
     '"a\x93" has the control character U+0093, which no template can hold',
     'Remove it. Example: `description: "Search autocomplete with GPT-2"`.'),
    ("serving", custom_serving({"A": "é" * 600}), Kind.VALUE,
     "the variable A has 1200 bytes: at most 1024",
     'Shorten it. Example: `environment: {"LOG_LEVEL": "info"}`.'),
    ("serving", custom_serving({f"K{number}": "x" * 1000 for number in range(32)}), Kind.VALUE,
     "the variables have 32086 bytes together, names included: at most 31744",
     "Put what is long into a file of the artifact. "
     'Example: `environment: {"LOG_LEVEL": "info"}`.'),
    ("serving", lmi_serving({}) | {"tensor_parallel_degree": "all"}, Kind.VALUE,
     '"all" is neither a whole number nor `max`',
     "Write a whole number without quotes, or `max`. Example: `tensor_parallel_degree: 4`."),
    ("serving", lmi_serving({}) | {"dtype": "fp17"}, Kind.VALUE,
     '"fp17" is not known here',
     "Did you mean `fp16`? Allowed: 'auto', 'fp32', 'fp16', 'bf16', 'int8' or 'fp8'. "
     'Example: `dtype: "fp16"`.'),
    ("serving", lmi_serving({}) | {"tensor_parallel_degree": 0}, Kind.VALUE,
     "0 is out of range: at least 1",
     "Use a value that is at least 1. Example: `tensor_parallel_degree: 4`."),
    ("serving", lmi_serving({"stop": [1, 2]}), Kind.VALUE,
     "[1, 2] is not a text, a number, true or false",
     "A line of serving.properties holds the value: write it in quotes as the handler reads it, "
     "for example `\"1,2\"` or `'{\"key\": 1}'`."),
    ("tags", [1], Kind.SHAPE, "[1] is not a mapping",
     'Write a mapping. Example: `tags: {"team": "search"}`.'),
    ("endpoint.instance_count", 1001, Kind.VALUE, "1001 is out of range: at most 1000",
     "Use a value that is at most 1000. Example: `instance_count: 2`."),
    ("model.parameters", 0, Kind.VALUE, "0 is out of range: more than 0",
     "Use a value that is more than 0. Example: `parameters: 1557611200`."),
    ("alarms.server_error_rate_percent", float("nan"), Kind.VALUE,
     "NaN is not a finite number",
     "Write a finite number. Example: `server_error_rate_percent: 1.0`."),
    ("autoscaling.target_invocations_per_instance_per_minute", float("inf"), Kind.VALUE,
     "Infinity is not a finite number",
     "Write a finite number. Example: `target_invocations_per_instance_per_minute: 600`."),
    ("description", "x" * 257, Kind.VALUE, f'"{"x" * 76}... has length 257: at most 256',
     'Give at most 256. Example: `description: "Search autocomplete with GPT-2"`.'),
    ("artifacts.sample.path", "", Kind.VALUE, '"" has length 0: at least 1',
     'Give at least 1. Example: `path: "samples/gpt2-autocomplete/model"`.'),
    ("endpoint.instances", [], Kind.VALUE, "[] has length 0: at least 1",
     'Give at least 1. Example: `instances: ["ml.g4dn.xlarge"]`.'),
    ("name", "Tiny", Kind.VALUE, f'"Tiny" does not have the form {NAME_FORM}',
     f"Write it in that form. {NAME_EXAMPLE}"),
    ("name", "foundation", Kind.VALUE, '"foundation" is reserved for Slipway\'s stacks',
     f"Reserved names: foundation, image-*, artifacts-*. {NAME_EXAMPLE}"),
    ("serving.container", ..., Kind.SHAPE, "required field is missing",
     "Add it. Allowed: tensorrt, lmi, triton, neuron, custom."),
    ("rollout", {"strategy": "blue"}, Kind.VALUE, '"blue" is not known here',
     "Allowed: 'all_at_once', 'canary', 'linear' or 'rolling'. Example: `strategy: \"canary\"`."),
    ("endpoint.instances", ["cheap"], Kind.VALUE, '"cheap" is not a known hosting instance type',
     "slipway/facts/instances.json lists the 277 known ones. "
     'Example: `instances: ["ml.g4dn.xlarge"]`.'),
    ("artifacts.sample.path", "/etc", Kind.VALUE, '"/etc" leads out of the project',
     "Write a path relative to the project's folder, without `..`. "
     'Example: `path: "samples/gpt2-autocomplete/model"`.'),
]  # fmt: skip


def findings(field: str, value: object) -> list:
    content = yaml.safe_load(CONFIG.replace("NAME", "tiny"))
    content["autoscaling"] = {
        "min_instance_count": 1,
        "max_instance_count": 2,
        "target_invocations_per_instance_per_minute": 60,
    }
    *parents, last = field.split(".")
    section = content
    for parent in parents:
        section = section[parent]
    if value is ...:
        del section[last]
    else:
        section[last] = value
    with pytest.raises(ValidationError) as caught:
        ModelConfig.model_validate(content)
    return caught.value.errors(include_url=False)


@pytest.mark.parametrize(
    ("field", "value", "kind", "message", "remedy"),
    CASES,
    ids=[f"{case[0]}={str(case[1])[:20]}" for case in CASES],
)
def test_each_kind_of_finding_teaches(field, value, kind, message, remedy):
    problem = describe(findings(field, value)[0], ModelConfig, {})
    assert problem.kind is kind
    assert problem.message == message
    assert problem.remedy == remedy


def test_every_text_is_reached_by_a_case():
    reached = {findings(case[0], case[1])[0]["type"] for case in CASES}
    golden = {"log_retention", "s3_prefix", "too_long"}
    # `less_than` is not used by the schema yet, and two are of environments.yaml.
    unused = {"key_of_another_region", "less_than", "own_account"}
    assert set(_TEXTS) - reached - golden == unused


def test_a_finding_without_a_text_has_the_validators_reason():
    found = describe(
        {"type": "value_error", "loc": ("description",), "input": 5, "msg": "odd"}, ModelConfig, {}
    )
    assert str(found).startswith(
        "description: 5: odd [SW223]\n    See docs/reference.md for what this field takes."
    )
