"""What a config's file may say, with its sections for environments, and what it may not.

Reports of several problems, each with its place and remedy, are golden: tests/golden/errors.
"""

import json

import pytest
import yaml

from slipway.config.load import config_files, load_config
from tests.support.projects import config_text, refusal, write_project

SERVING = """\
serving:
  container: tensorrt
  max_batch_size: 8
  max_input_tokens: 64
  max_new_tokens: 42
  default_new_tokens: 12
"""
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com/"
IMAGE_URI = f"{REGISTRY}search:1.4.2"


def load(root, text: str, name: str = "tiny"):
    (root / "model_configs").mkdir(exist_ok=True)
    path = root / "model_configs" / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, root, "local", ("local", "production"))


def custom(**fields: object) -> str:
    serving = {"container": "custom", "image_uri": IMAGE_URI, **fields}
    text = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in serving.items())
    return config_text("tiny", (SERVING, f"serving:\n{text}"))


def report(root, text: str, name: str = "tiny") -> str:
    return str(refusal(load, root, text, name))


def test_a_config_that_is_right_loads_with_its_defaults_numbers_and_lines(tmp_path):
    config = load(tmp_path, config_text("tiny")).config
    assert config.endpoint.instances == ("ml.g4dn.xlarge",)
    assert config.endpoint.network_isolation is True
    assert config.endpoint.log_retention_days == 30
    assert config.autoscaling is None
    text = config_text("tiny", ("parameters: 124439808", "parameters: 124.4e6"))
    assert load(tmp_path, text).config.model.parameters == 124_400_000
    text = config_text("tiny", ("A model to test with", "|\n  One\tline.\n  Another. 雪"))
    assert load(tmp_path, text).config.description == "One\tline.\nAnother. 雪\n"


def test_a_wrong_item_and_a_number_with_two_readings_are_one_problem(tmp_path):
    text = config_text("tiny", ("[ml.g4dn.xlarge]", "[5]"))
    assert report(tmp_path, text).startswith(
        "1 problem\n- model_configs/tiny.yaml:23:15: endpoint.instances[0]: 5 is not a text "
        "[SW108]\n"
    )
    text = config_text("tiny", ("max_batch_size: 8", "max_batch_size: 0100000"))
    found = report(tmp_path, text)
    assert found.startswith("1 problem\n")
    assert "serving.max_batch_size: 0100000 has two readings: 32768 in YAML 1.1" in found


def test_configs_are_found_by_name_and_in_order(tmp_path):
    root = write_project(tmp_path, {"b": "", "a": "", ".hidden": ""})
    (root / "model_configs" / "notes.txt").touch()
    assert list(config_files(root)) == ["a", "b"]
    assert config_files(tmp_path / "elsewhere") == {}


OVERLAYS = """
environments:
  production:
    endpoint:
      instance_count: 4
      instances: [ml.g5.xlarge]
"""


def overlaid(tmp_path, text, environment="production"):
    path = tmp_path / "tiny.yaml"
    path.write_text(config_text("tiny") + text, encoding="utf-8")
    return load_config(path, tmp_path, environment, ("local", "production"))


def test_an_environments_section_is_laid_over_the_file(tmp_path):
    config = overlaid(tmp_path, OVERLAYS).config
    assert config.endpoint.instance_count == 4
    assert config.endpoint.instances == ("ml.g5.xlarge",)
    # What it does not say stays.
    assert config.endpoint.model_data_download_timeout_seconds == 600
    # What is wrong in a section is nobody else's business.
    wrong = OVERLAYS.replace("count: 4", "count: 0").replace("ml.g5.xlarge", "ml.g5.xlarg")
    assert overlaid(tmp_path, wrong, "local").config.endpoint.instance_count == 2


def test_a_section_for_nobody_and_what_no_section_may_say(tmp_path):
    text = "\nenvironments:\n  prodution:\n    name: other\n  production:\n    environments: {}\n"
    assert [(p.message, p.remedy) for p in refusal(overlaid, tmp_path, text).problems] == [
        (
            "there is no environment 'prodution'",
            "Did you mean `production`? environments.yaml has: local, production.",
        ),
        ("`name` is the same in every environment", "Remove this line."),
        ("`environments` is the same in every environment", "Remove this line."),
    ]


def test_a_value_that_is_replaced_takes_its_place_along(tmp_path):
    text = "\nenvironments:\n  production:\n    tags: 5\n"
    (problem,) = refusal(overlaid, tmp_path, "\ntags:\n  team: search\n" + text).problems
    assert problem.message == "5 is not a mapping"
    lines = (tmp_path / "tiny.yaml").read_text("utf-8").splitlines()
    assert lines[problem.location.line - 1] == "    tags: 5"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2024-01-02", "2024-01-02 is not a text: without quotes, YAML reads it as a date"),
        ("2024-01-02 03:04:05",
         "2024-01-02 03:04:05 is not a text: without quotes, YAML reads it as a date"),
        ("NO", "NO is not a text: without quotes, YAML reads it as false"),
        ("007", "007 is not a text: without quotes, YAML reads it as a number"),
        ("1_000", "1_000 is not a text: without quotes, YAML reads it as a number"),
    ],
)  # fmt: skip
def test_an_unquoted_value_is_shown_as_written(tmp_path, text, shown):
    config = config_text("tiny") + f"tags: {{released: {text}}}\n"
    told = f"tags.released: {shown} [SW108]\n    Put the value in quotes."
    assert told in report(tmp_path, config)
    # The written form follows an environment's section.
    overlaid = config_text("tiny") + f"environments: {{local: {{description: {text}}}}}\n"
    assert f"description: {shown} [SW108]" in report(tmp_path, overlaid)


HUB_TOKEN = "hf_" + "a1B2" * 8
ACCESS_KEY = "AKIA" + "ABCDEFGH" * 2
STORE = (
    "Revoke it, since the file may be copied. Store the new one in AWS Secrets Manager, and write "
    '`"{{resolve:secretsmanager:NAME}}"`: CloudFormation puts the value in at a deploy. The '
    "embedded AWS resolves no secrets: override the variable under `environments.local`."
)
ROLE = "Remove it: the endpoint's own role gives the container its credentials."
REVOKE = (
    "Remove it and revoke it, since the file may be copied. Only variables under "
    "`serving.environment` may refer to a secret of AWS Secrets Manager."
)


@pytest.mark.parametrize(
    ("field", "text", "kind", "remedy"),
    [
        ("serving.environment.HF_TOKEN", HUB_TOKEN, "a Hugging Face token", STORE),
        ("environments.production.serving.environment.X", HUB_TOKEN, "a Hugging Face token", STORE),
        ("serving.environment.ID", ACCESS_KEY, "an AWS access key", ROLE),
        ("serving.environment.AWS_SECRET_ACCESS_KEY", "any", "an AWS access key", ROLE),
        ("description", f"for {ACCESS_KEY}.", "an AWS access key", REVOKE),
        ("tags.token", "ghp_" + "a" * 36, "a GitHub token", REVOKE),
    ],
)
def test_a_secret_is_refused_and_not_shown(tmp_path, field, text, kind, remedy):
    section = content = yaml.safe_load(custom(environment={}))
    *path, name = field.split(".")
    for part in path:
        section = section.setdefault(part, {})
    section[name] = text
    found = report(tmp_path, yaml.safe_dump(content))
    assert f": {field}: the value has the form of {kind} [SW224]\n    {remedy}" in found
    assert text not in found


@pytest.mark.parametrize("text", ["{{resolve:secretsmanager:hub}}", "hf_transfer", "AKIA"])
def test_a_reference_to_a_secret_is_no_secret(tmp_path, text):
    variables = {"AWS_SECRET_ACCESS_KEY": "{{resolve:secretsmanager:key}}", "HF_TOKEN": text}
    config = load(tmp_path, custom(environment=variables)).config
    assert config.serving.environment == variables


def test_a_config_may_end_in_yml_and_two_files_are_refused(tmp_path):
    folder = tmp_path / "model_configs"
    folder.mkdir()
    (folder / "tiny.yml").write_text(config_text("tiny"), "utf-8")
    (folder / ".hidden.yml").write_text("", "utf-8")
    assert config_files(tmp_path) == {"tiny": folder / "tiny.yml"}
    found = report(tmp_path, config_text("tiny"))
    assert config_files(tmp_path) == {"tiny": folder / "tiny.yaml"}
    assert found == (
        "1 problem\n- model_configs/tiny.yaml:1:1: tiny.yml is a second file for the model 'tiny' "
        "[SW114]\n    Remove or rename one of the two."
    )


@pytest.mark.parametrize("key", ["team", "Kosten Stelle", "a_.:/=+-@9", "équipe", "y" * 128])
def test_tags_that_every_service_takes(tmp_path, key):
    tags = f"tags: {json.dumps({key: key}, ensure_ascii=False)}\n"
    assert load(tmp_path, config_text("tiny") + tags).config.tags == {key: key}


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        (
            {"team": "a\tb"},
            'tags.team: "a\\tb" has the character "\\t", which tags cannot have [SW',
        ),
        ({"team": ""}, 'tags.team: "" has length 0: at least 1 [SW204]\n'),
        ({"AWS:team": "search"}, 'tags.AWS:team: "AWS:team" is a reserved key [SW212]\n'),
        ({"Slipway:model": "x"}, '"Slipway:model" is a reserved key [SW212]\n'),
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


def test_variables_are_counted_in_bytes_and_together(tmp_path):
    assert load(tmp_path, custom(environment={"A": "é" * 512})).config.serving.environment
    found = report(tmp_path, custom(environment={"A": "é" * 513}))
    assert "environment: the variable A has 1026 bytes: at most 1024 [SW214]\n" in found
    # A name of one byte and 991 of value.
    fitting = {chr(ord("A") + number): "x" * 991 for number in range(26)}
    more = {chr(ord("a") + number): "x" * 991 for number in range(6)}
    assert load(tmp_path, custom(environment=fitting | more)).config.serving.environment
    found = report(tmp_path, custom(environment=fitting | more | {"Z": "x" * 992}))
    assert "environment: the variables have 31745 bytes together, names included: at " in found


def test_an_image_has_an_address_that_sagemaker_takes(tmp_path):
    longest = REGISTRY + "a" * (253 - len(REGISTRY)) + ":1"
    assert load(tmp_path, custom(image_uri=longest)).config.serving.image_uri == longest
    found = report(tmp_path, custom(image_uri=longest + "2"))
    assert "has length 256: at most 255" in found
    for tag in ("é", "-1", "x" * 129):
        assert "does not have the form" in report(tmp_path, custom(image_uri=f"{REGISTRY}a:{tag}"))


TARGET = {
    "0.001": None,
    "1000000000": None,
    "0.0009": "at least 0.001",
    "1.0e+200": "at most 1000000000.0",
}
TIMEOUT = {"60": None, "3600": None, "59": "at least 60", "3601": "at most 3600"}
RANGES = {
    "target_invocations_per_instance_per_minute": TARGET,
    "target_concurrent_requests_per_instance": TARGET,
    "target_backlog_per_instance": TARGET,
    "model_data_download_timeout_seconds": TIMEOUT,
    "container_startup_health_check_timeout_seconds": TIMEOUT,
}


@pytest.mark.parametrize("field", RANGES)
def test_a_number_takes_both_ends_of_its_range_and_nothing_beyond(tmp_path, field):
    text = config_text("tiny")
    if field not in text:
        text += "\nautoscaling:\n  min_instance_count: 1\n  max_instance_count: 2\n"
        text += f"  {field}: 600\n"
    for value, limit in RANGES[field].items():
        edited = text.replace(f"{field}: 600", f"{field}: {value}")
        if limit is None:
            load(tmp_path, edited)
        else:
            found = report(tmp_path, edited)
            assert f".{field}: {value} is out of range: {limit} [SW203]\n" in found
