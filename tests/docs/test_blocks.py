"""Every fenced block of the pages is what its label says: valid, or at least a real command."""

import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.benchmarking.design import load_design
from slipway.config.names import SHARED_KEYS
from slipway.errors import UserError
from slipway.project import Project
from tests.support.page_commands import check_command
from tests.support.pages import ROOT, Block, blocks, laid_over, lay_project, pages

BLOCKS = [block for page in pages() for block in blocks(page)]
KNOWN = {
    ("console",), ("console", "run"), ("json",), ("json", "lines"), ("json", "output"), ("sh",),
    ("sh", "aws"), ("sh", "run"), ("text",), ("text", "output"), ("yaml", "action"),
    ("yaml", "design"), ("yaml", "environments"), ("yaml", "gitlab"), ("yaml", "model"),
    ("yaml", "pre-commit"), ("yaml", "workflow"),
    ("python", "app"), ("python", "function"),
    ("python", "client"), ("python", "client", "langchain"), ("python", "client", "litellm"),
    ("python", "client", "sagemaker-2"), ("python", "client", "sagemaker-3"),
    ("python", "file", "our_policies.py"),
}  # fmt: skip

QUOTED = ("python", "toml")


def of(language: str, *labels: str) -> list[Any]:
    return [
        pytest.param(block, id=block.place)
        for block in BLOCKS
        if block.language == language and block.labels[: len(labels)] == labels
    ]


def test_every_block_has_a_known_label() -> None:
    unknown = [
        block.place
        for block in BLOCKS
        if (block.language, *block.labels) not in KNOWN
        and not (block.language in ("yaml", *QUOTED) and block.labels[:2] == ("part", "of"))
    ]
    assert unknown == []


@pytest.mark.parametrize("block", of("yaml", "design"))
def test_a_design_is_valid(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(block.text, "utf-8")
    assert load_design(path, tmp_path).cells()


@pytest.mark.parametrize("block", [*of("yaml", "model"), *of("yaml", "part")])
def test_a_model_or_a_part_of_a_config_is_valid(tmp_path: Path, block: Block) -> None:
    configs = lay_project(ROOT / block.place.partition(":")[0], tmp_path)
    is_whole = block.labels == ("model",)
    content = yaml.safe_load(block.text) if is_whole else laid_over(block)
    name = content["name"]
    (configs / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    project = Project(tmp_path)
    project.plan(name, project.environment("ci"), allow_unpublished=True)


@pytest.mark.parametrize(
    "block", [block for language in QUOTED for block in of(language, "part", "of")]
)
def test_a_part_of_a_file_is_in_it(block: Block) -> None:
    text = (ROOT / block.labels[2]).read_text("utf-8")
    # Ruff formats the blocks of pages, and a method begins its line there.
    assert block.text in text or textwrap.indent(block.text, "    ") in text


@pytest.mark.parametrize("block", of("yaml", "environments"))
def test_environments_are_valid(tmp_path: Path, block: Block) -> None:
    (tmp_path / "environments.yaml").write_text(block.text, "utf-8")
    (tmp_path / "certificates").mkdir()
    (tmp_path / "certificates" / "mirror.pem").write_text("-----BEGIN CERTIFICATE-----\n", "utf-8")
    for name in yaml.safe_load(block.text).keys() - {*SHARED_KEYS}:
        Project(tmp_path).environment(name)


@pytest.mark.parametrize("page", ["README.md", "docs/troubleshooting.md"])
def test_the_report_on_two_mistakes_is_real(tmp_path: Path, page: str) -> None:
    (block,) = (block for block in blocks(ROOT / page) if "validate\n2 prob" in block.text)
    path = lay_project(ROOT / page, tmp_path) / "gpt2-autocomplete.yaml"
    text = (ROOT / "model_configs" / path.name).read_text("utf-8")
    text = text.replace("[ml.g4dn.xlarge]", "[ml.g4dn.xlage]")
    text = text.replace("download_timeout_seconds: 600", "download_timeout_seconds: 59")
    path.write_text(text, "utf-8")
    with pytest.raises(UserError) as caught:
        Project(tmp_path).config("gpt2-autocomplete", "local")
    assert f"$ slipway validate\n{caught.value}\n" == block.text


@pytest.mark.parametrize("block", of("json"))
def test_json_is_json(block: Block) -> None:
    for document in block.text.splitlines() if "lines" in block.labels else [block.text]:
        json.loads(document)


@pytest.mark.parametrize("block", [*of("sh"), *of("console")])
def test_commands_exist_and_their_options_too(block: Block) -> None:
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        assert lines
    script = "\n".join(lines)
    parsed = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert parsed.returncode == 0, parsed.stderr
    for line in lines:
        check_command(line)
