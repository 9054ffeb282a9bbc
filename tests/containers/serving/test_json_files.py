"""JSON files beside a model: read, and refused with every problem in one line."""

import json
import re

import pytest

from containers.serving.json_files import (
    POSITIVE,
    TEXTS,
    DescriptionFile,
    one_of,
    read_object,
    text,
    whole_number,
)
from containers.serving.predictor import ModelLoadError
from tests.support.messages import message_of

REMEDY = "compile the model again"
FILE = DescriptionFile(
    name="compiled.json",
    format_version=2,
    subject="what it was compiled for",
    remedy=REMEDY,
    fields={
        "target": text('like "sm86"', re.compile("sm[0-9]{2}").fullmatch),
        "dtype": one_of(("fp32", "fp16")),
        "batch_size": whole_number(64),
        "layers": POSITIVE,
        "outputs": TEXTS,
    },
    contradictions=lambda fields: ["fp16 has no layers"] if fields["dtype"] == "fp16" else [],
)
FIELDS = {"target": "sm86", "dtype": "fp32", "batch_size": 8, "layers": 1, "outputs": ["logits"]}


def refusal(directory, changes):
    FILE.write(directory, FIELDS | changes)
    return message_of(ModelLoadError, FILE.read, directory).replace(str(directory), "DIR")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not valid JSON: Expecting value"),
        (b"\xff", "is not valid JSON: 'utf-8' codec can't decode"),
        (b"[" * 100_000, "is not valid JSON: maximum recursion depth"),
        (b"[]", "must hold a JSON object"),
    ],
    ids=["empty", "not UTF-8", "deep", "a list"],
)
def test_files_that_hold_no_object(tmp_path, content, problem):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ModelLoadError, match=f"^{path} {problem}"):
        read_object(path)


def test_a_file_that_cannot_be_read_is_no_bug(tmp_path):
    with pytest.raises(ModelLoadError, match=f"^cannot read {tmp_path}: Is a directory$"):
        read_object(tmp_path)


def test_what_is_written_is_read(tmp_path):
    FILE.write(tmp_path, FIELDS)
    assert json.loads((tmp_path / FILE.name).read_text()) == {"format_version": 2} | FIELDS
    assert FILE.read(tmp_path) == FIELDS


def test_a_missing_file_is_named(tmp_path):
    assert message_of(ModelLoadError, FILE.read, tmp_path) == (
        f"{tmp_path} lacks compiled.json, which tells what it was compiled for: {REMEDY}"
    )


@pytest.mark.parametrize(("version", "shown"), [(1, "1"), (True, "true"), (None, "null")])
def test_another_format_is_refused(tmp_path, version, shown):
    assert refusal(tmp_path, {"format_version": version}) == (
        f"DIR/compiled.json has format_version {shown}, and this container reads 2: {REMEDY}"
    )


def test_every_bad_field_is_named_at_once(tmp_path):
    bad = {"target": "86", "dtype": ["fp32"], "batch_size": 65, "layers": True, "outputs": [1]}
    assert refusal(tmp_path, bad | {"typo": 1}) == (
        'DIR/compiled.json: typo is not a field of it; target must be like "sm86", not "86"; '
        'dtype must be one of fp32, fp16, not ["fp32"]; '
        "batch_size must be a whole number from 1 to 64, not 65; "
        "layers must be a positive whole number, not true; "
        f"outputs must be an array of texts, not [1]; {REMEDY}"
    )


def test_contradictions_are_looked_for_only_in_valid_fields(tmp_path):
    assert refusal(tmp_path, {"dtype": "fp16"}) == (
        f"DIR/compiled.json: fp16 has no layers; {REMEDY}"
    )
    assert "has no layers" not in refusal(tmp_path, {"dtype": "fp16", "batch_size": 0})
