"""The schema that editors use: the one in the repository is the schema's, and it says the same."""

from pathlib import Path

import jsonschema
import pytest
import yaml

import slipway
from slipway.config.editor_schema import FIRST_LINE, render
from slipway.config.load import config_files
from tests.support.projects import config_text

ROOT = Path(slipway.__file__).parents[1]
SCHEMA = yaml.safe_load(render())
# `jsonschema.validate` would check the schema itself each time.
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_it_is_a_json_schema_whose_file_and_first_lines_are_up_to_date():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    committed = (ROOT / "model_configs" / "schema.json").read_text("utf-8")
    # pytest takes most of a minute to show how two texts of this length differ.
    is_up_to_date = committed == render()
    assert is_up_to_date, "run `slipway schema`"
    for path in config_files(ROOT).values():
        assert path.read_text("utf-8").splitlines()[0] == FIRST_LINE
    endpoint = SCHEMA["$defs"]["Endpoint"]["properties"]
    assert endpoint["instances"]["items"] == {"$ref": "#/$defs/InstanceType"}
    assert "in order of preference" in endpoint["instances"]["description"]
    assert len(SCHEMA["$defs"]["InstanceType"]["enum"]) == 277


@pytest.mark.parametrize("path", config_files(ROOT).values(), ids=lambda path: path.stem)
def test_configs_that_ship_pass(path):
    VALIDATOR.validate(yaml.safe_load(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "edit",
    [
        ("ml.g4dn.xlarge", "ml.g4dn.xlage"),
        ("  container: tensorrt\n", "  container: tensorflow\n"),
        ("instance_count: 2", "instance_counts: 2"),
        ("instance_count: 2", "instance_count: 0"),
        ("  parameters: 124439808\n", ""),
    ],
)
def test_mistakes_fail(edit):
    good = config_text("tiny")
    VALIDATOR.validate(yaml.safe_load(good))
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(yaml.safe_load(config_text("tiny", edit)))
