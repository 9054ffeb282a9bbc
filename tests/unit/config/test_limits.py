"""Values that a template or a service refuses are refused in the file, with their place."""

import json

import pytest

from slipway.config.load import load_config
from tests.support.projects import config_text, refusal

CUSTOM = """\
serving:
  container: custom
  image_uri: 123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2
"""
SERVING = """\
serving:
  container: tensorrt
  max_batch_size: 8
  max_input_tokens: 64
  max_new_tokens: 42
  default_new_tokens: 12
"""


def load(root, text: str):
    path = root / "tiny.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, root, "local", ("local",)).config


def report(root, text: str) -> str:
    return str(refusal(load, root, text))


def custom(**fields: object) -> str:
    text = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in fields.items())
    serving = CUSTOM if "image_uri" not in fields else "serving:\n  container: custom\n"
    return config_text("tiny", (SERVING, serving + text))


@pytest.mark.parametrize("key", ["team", "Kosten Stelle", "a_.:/=+-@9", "équipe", "y" * 128])
def test_tags_that_every_service_takes(tmp_path, key):
    tags = f"tags: {json.dumps({key: key}, ensure_ascii=False)}\n"
    assert load(tmp_path, config_text("tiny") + tags).tags == {key: key}


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"R&D": "search"}, 'tags.R&D: "R&D" has the character "&", which tags cannot have [SW212'),
        (
            {"team": "a\tb"},
            'tags.team: "a\\tb" has the character "\\t", which tags cannot have [SW',
        ),
        ({"team": ""}, 'tags.team: "" has length 0: at least 1 [SW204]\n'),
        ({"AWS:team": "search"}, 'tags.AWS:team: "AWS:team" is a reserved key [SW212]\n'),
        ({"Slipway:model": "x"}, '"Slipway:model" is a reserved key [SW212]\n'),
        ({"Team": "a", "team": "b"}, 'tags: "Team" and "team" are one tag: IAM\'s keys are not '),
    ],
)
def test_tags_that_a_service_refuses(tmp_path, tags, message):
    assert message in report(tmp_path, config_text("tiny") + f"tags: {json.dumps(tags)}\n")


@pytest.mark.parametrize(
    ("letter", "name"), [("\x07", "U+0007"), ("\x93", "U+0093"), ("\uffff", "U+FFFF")]
)
def test_text_that_no_template_can_hold(tmp_path, letter, name):
    # As YAML writes such a character: none may stand in a file as it is.
    written = f'"a\\u{ord(letter):04x}"'
    edit = ("A model to test with", written)
    found = report(tmp_path, config_text("tiny", edit))
    message = f"has the control character {name}, which no template can hold [SW213]\n"
    assert f"tiny.yaml:2:1: description: {json.dumps('a' + letter, ensure_ascii=False)} " in found
    assert message in found
    assert message in report(tmp_path, custom(environment={"A": f"a{letter}"}))


def test_text_may_have_several_lines(tmp_path):
    text = config_text("tiny", ("A model to test with", "|\n  One\tline.\n  Another. 雪"))
    assert load(tmp_path, text).description == "One\tline.\nAnother. 雪\n"


def test_variables_are_counted_in_bytes(tmp_path):
    assert load(tmp_path, custom(environment={"A": "é" * 512})).serving.environment
    found = report(tmp_path, custom(environment={"A": "é" * 513}))
    assert "environment: the variable A has 1026 bytes: at most 1024 [SW214]\n" in found


def test_variables_are_counted_together(tmp_path):
    # A name of one byte and 991 of value.
    fitting = {chr(ord("A") + number): "x" * 991 for number in range(26)}
    more = {chr(ord("a") + number): "x" * 991 for number in range(6)}
    assert load(tmp_path, custom(environment=fitting | more)).serving.environment
    found = report(tmp_path, custom(environment=fitting | more | {"Z": "x" * 992}))
    assert "environment: the variables have 31745 bytes together, names included: at " in found


REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com/"


def test_an_image_has_an_address_that_sagemaker_takes(tmp_path):
    longest = REGISTRY + "a" * (253 - len(REGISTRY)) + ":1"
    assert load(tmp_path, custom(image_uri=longest)).serving.image_uri == longest
    found = report(tmp_path, custom(image_uri=longest + "2"))
    assert "has length 256: at most 255" in found
    for tag in ("é", "-1", "x" * 129):
        assert "does not have the form" in report(tmp_path, custom(image_uri=f"{REGISTRY}a:{tag}"))


@pytest.mark.parametrize(
    "field",
    [
        "target_invocations_per_instance_per_minute",
        "target_concurrent_requests_per_instance",
        "target_backlog_per_instance",
    ],
)
@pytest.mark.parametrize(
    ("value", "limit"), [("0.0009", "at least 0.001"), ("1.0e+200", "at most 1000000000.0")]
)
def test_a_target_that_autoscaling_takes(tmp_path, field, value, limit):
    bounds = "\nautoscaling:\n  min_instance_count: 1\n  max_instance_count: 2\n"
    text = config_text("tiny") + bounds
    for fitting in ("0.001", "1000000000"):
        assert load(tmp_path, f"{text}  {field}: {fitting}\n").autoscaling
    found = report(tmp_path, f"{text}  {field}: {value}\n")
    assert f"autoscaling.{field}: {value} is out of range: {limit} [SW203]\n" in found
