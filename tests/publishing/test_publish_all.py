"""`slipway publish --all`: every model with files, and one bad model blocks no other."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Run
from tests.support.projects import config_text, write_project

WITHOUT_SAMPLE = ("  sample:\n    path: samples/tiny\n", "")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two models with a sample, and one that has files for other environments only."""
    models = {
        "first": config_text("first"),
        "released": config_text("released", WITHOUT_SAMPLE),
        "second": config_text("second"),
    }
    return write_project(tmp_path, models)


def locks(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "model_configs").glob("*.lock.json"))


def test_models_without_files_for_the_environment_are_left_out(command: Run, root: Path) -> None:
    code, output, errors = command("publish", "--all")
    assert (code, errors) == (0, "")
    published = [line for line in output.splitlines() if line.startswith("Published ")]
    assert [line.split()[1] for line in published] == ["first", "second"]
    assert locks(root) == ["first.lock.json", "second.lock.json"]


def test_verify_says_that_every_byte_was_read(command: Run, root: Path) -> None:
    code, output, _ = command("publish", "--all", "--verify")
    assert code == 0
    read = "Every byte in the bucket was read: it is what the digests say."
    assert output.splitlines().count(read) == 2


def test_a_bad_model_is_reported_and_blocks_no_other(command: Run, root: Path) -> None:
    path = root / "model_configs" / "first.yaml"
    path.write_text(path.read_text().replace("instance_count: 2", "instance_count: 0"))
    code, output, errors = command("publish", "--all")
    assert code == 1
    assert output.startswith("Published second to local: ")
    assert errors.startswith(
        "1 problem\n- model_configs/first.yaml:24:3: endpoint.instance_count: 0 is out of range"
    )
    assert locks(root) == ["second.lock.json"]
    code, output, errors = command("publish", "--all", "--json")
    assert (code, errors) == (1, "")
    told = json.loads(output)
    assert [(each["name"], each["file_count"]) for each in told["published"]] == [("second", 2)]
    assert [problem["file"] for problem in told["problems"]] == ["model_configs/first.yaml"]


def test_where_no_model_has_files_that_is_the_report(command: Run, root: Path) -> None:
    for name in ("first", "second"):
        (root / "model_configs" / f"{name}.yaml").unlink()
    code, output, errors = command("publish", "--all")
    assert (code, output) == (1, "")
    assert errors.startswith("1 problem\n- no model config has a sample for local [SW412]\n")


def test_the_model_of_a_fallback_type_is_published_too(command: Run, root: Path) -> None:
    path = root / "model_configs" / "first.yaml"
    pool = "[ml.g4dn.xlarge, ml.g5.xlarge]\n  model_overrides:\n    - instances: [ml.g5.xlarge]\n"
    own = "      artifacts: {sample: {path: samples/larger}, release: {target: sm86}}"
    path.write_text(path.read_text().replace("[ml.g4dn.xlarge]", pool + own))
    shutil.copytree(root / "samples" / "tiny", root / "samples" / "larger")
    (root / "samples" / "larger" / "more").write_text("more")
    code, output, errors = command("publish", "first")
    assert (code, errors) == (0, "")
    assert "Published first@ml.g5.xlarge to local: " in output
    lock = json.loads((root / "model_configs" / "first.lock.json").read_text())
    own_digest = lock["variants"]["ml.g5.xlarge"]["sample"]["compiled"]["digest"]
    assert own_digest != lock["sample"]["compiled"]["digest"]
    code, output, _ = command("plan", "first")
    assert code == 0
    assert f"artifacts/{own_digest}/files/" in output
