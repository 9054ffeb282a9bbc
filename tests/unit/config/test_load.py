"""Every problem of a file in one report, each with its place, value, limit and remedy."""

import pytest
import yaml

from slipway.config.load import config_files, load_config
from tests.support.projects import config_text, refusal, write_project

IMAGE_URI = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2"


def load(root, text: str, name: str = "tiny"):
    (root / "model_configs").mkdir(exist_ok=True)
    path = root / "model_configs" / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, root, "local", ("local", "production"))


def report(root, text: str, name: str = "tiny") -> str:
    return str(refusal(load, root, text, name))


def test_a_config_that_is_right_loads_with_its_defaults(tmp_path):
    config = load(tmp_path, config_text("tiny")).config
    assert config.endpoint.instances == ("ml.g4dn.xlarge",)
    assert config.endpoint.network_isolation is True
    assert config.endpoint.log_retention_days == 30
    assert config.autoscaling is None


def test_all_that_is_wrong_is_in_one_report_in_the_files_order(tmp_path):
    text = config_text(
        "tiny",
        ("  max_batch_size: 8\n", "  max_batchsize: 8\n"),
        ("parameters: 124439808", 'parameters: "124439808"'),
        ("instances: [ml.g4dn.xlarge]", "instances: [ml.g4dn.xlrge]"),
        ("  instance_count: 2\n", "  instance_count: 2\n  instance_count: 3\n"),
        ("model_data_download_timeout_seconds: 600", "model_data_download_timeout_seconds: 59"),
        ("health_check_timeout_seconds: 600", "health_check_timeout_seconds: 3601"),
    )
    assert (
        report(tmp_path, text)
        == """\
6 problems
- model_configs/tiny.yaml:6:3: model.parameters: "124439808" is not a whole number [SW108]
    Write the number without quotes. Example: `parameters: 1557611200`.
- model_configs/tiny.yaml:10:3: serving.max_batchsize: unknown field [SW106]
    Did you mean `max_batch_size`? Allowed here: batch_size, container, default_new_tokens, \
dtype, max_batch_delay_milliseconds, max_batch_size, max_input_tokens, max_new_tokens, \
max_queue_length, request_timeout_seconds, sequence_length, sequence_lengths, task, \
tensorrt_version.
- model_configs/tiny.yaml:23:15: endpoint.instances[0]: "ml.g4dn.xlrge" is not a known \
hosting instance type [SW201]
    Did you mean `ml.g4dn.xlarge`? slipway/facts/instances.json lists the 277 known ones. \
Example: `instances: ["ml.g4dn.xlarge"]`.
- model_configs/tiny.yaml:25:3: endpoint.instance_count: the key is given twice; the first is on \
line 24 [SW105]
    Keep one of the two.
- model_configs/tiny.yaml:26:3: endpoint.model_data_download_timeout_seconds: 59 is out of range: \
at least 60 [SW203]
    Use a value that is at least 60. Example: `model_data_download_timeout_seconds: 600`.
- model_configs/tiny.yaml:27:3: endpoint.container_startup_health_check_timeout_seconds: 3601 is \
out of range: at most 3600 [SW203]
    Use a value that is at most 3600. \
Example: `container_startup_health_check_timeout_seconds: 600`."""
    )


@pytest.mark.parametrize(
    "field",
    ["model_data_download_timeout_seconds", "container_startup_health_check_timeout_seconds"],
)
def test_timeouts_take_both_ends_of_their_range_and_nothing_beyond(tmp_path, field):
    for seconds in (60, 3600):
        text = config_text("tiny", (f"{field}: 600", f"{field}: {seconds}"))
        assert getattr(load(tmp_path, text).config.endpoint, field) == seconds
    for seconds, limit in ((59, "at least 60"), (3601, "at most 3600")):
        found = report(tmp_path, config_text("tiny", (f"{field}: 600", f"{field}: {seconds}")))
        assert f"endpoint.{field}: {seconds} is out of range: {limit} [SW203]\n" in found


def test_the_name_is_the_files(tmp_path):
    assert report(tmp_path, config_text("other")) == (
        "1 problem\n"
        "- model_configs/tiny.yaml:1:1: name: 'other' is not the file's name, 'tiny' [SW207]\n"
        "    Write `name: tiny`, or rename the file."
    )


def test_a_file_that_is_not_yaml_is_one_problem(tmp_path):
    assert report(tmp_path, "name: [tiny\n").startswith(
        "1 problem\n- model_configs/tiny.yaml:2:1: the file is not YAML: "
    )


def test_a_missing_section_is_shown_where_the_file_begins(tmp_path):
    found = report(tmp_path, config_text("tiny").split("alarms:")[0])
    assert found == (
        "1 problem\n"
        "- model_configs/tiny.yaml:1:1: alarms: required field is missing [SW107]\n"
        "    Add it. It has no default."
    )


def test_a_list_is_not_also_too_short_because_its_only_item_is_wrong(tmp_path):
    text = config_text("tiny", ("[ml.g4dn.xlarge]", "[5]"))
    assert report(tmp_path, text).startswith(
        "1 problem\n- model_configs/tiny.yaml:23:15: endpoint.instances[0]: 5 is not a text "
        "[SW108]\n"
    )


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
    assert overlaid(tmp_path, OVERLAYS, "local").config.endpoint.instance_count == 2


def test_what_is_wrong_in_a_section_has_its_own_place(tmp_path):
    text = OVERLAYS.replace("count: 4", "count: 0").replace("ml.g5.xlarge", "ml.g5.xlarg")
    caught = refusal(overlaid, tmp_path, text)
    lines = (config_text("tiny") + text).splitlines()
    count = next(n for n, line in enumerate(lines, 1) if "instance_count: 0" in line)
    assert [(p.location.line, p.field) for p in caught.problems] == [
        (count, ("endpoint", "instance_count")),
        (count + 1, ("endpoint", "instances", 0)),
    ]
    # Nobody else's business.
    assert overlaid(tmp_path, text, "local").config.endpoint.instance_count == 2


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
    content = yaml.safe_load(config_text("tiny"))
    content["serving"] = {"container": "custom", "image_uri": IMAGE_URI, "environment": {}}
    section = content
    *path, name = field.split(".")
    for part in path:
        section = section.setdefault(part, {})
    section[name] = text
    found = report(tmp_path, yaml.safe_dump(content))
    assert f": {field}: the value has the form of {kind} [SW224]\n    {remedy}" in found
    assert text not in found


@pytest.mark.parametrize("text", ["{{resolve:secretsmanager:hub}}", "hf_transfer", "AKIA"])
def test_a_reference_to_a_secret_is_no_secret(tmp_path, text):
    content = yaml.safe_load(config_text("tiny"))
    variables = {"AWS_SECRET_ACCESS_KEY": "{{resolve:secretsmanager:key}}", "HF_TOKEN": text}
    content["serving"] = {"container": "custom", "image_uri": IMAGE_URI, "environment": variables}
    config = load(tmp_path, yaml.safe_dump(content)).config
    assert config.serving.environment == variables


def test_a_number_with_two_readings_has_no_second_problem(tmp_path):
    text = config_text("tiny", ("max_batch_size: 8", "max_batch_size: 0100000"))
    found = report(tmp_path, text)
    assert found.startswith("1 problem\n")
    assert "serving.max_batch_size: 0100000 has two readings: 32768 in YAML 1.1" in found


def test_numbers_with_exponents_are_numbers(tmp_path):
    text = config_text("tiny", ("parameters: 124439808", "parameters: 124.4e6"))
    assert load(tmp_path, text).config.model.parameters == 124_400_000


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
