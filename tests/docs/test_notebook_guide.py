"""The guide from a notebook to a YAML: its commands run, and print what the page shows."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.described_endpoints import NAME, REGION, FakeAws, answers
from tests.support.pages import ROOT, blocks
from tests.support.projects import write_project
from tests.support.published import safetensors

PAGE = ROOT / "docs" / "guides" / "notebook-to-yaml.md"
BLOCKS = list(blocks(PAGE))
TEXTS = [block.text for block in BLOCKS if block.language == "text"]
PROPERTIES, PROGRAM, PRINTED, REMOVAL = TEXTS
IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.30.0-lmi12.0.0-cu124"
# The Hub is asked in tests/importing/test_import_hub.py, on a stand-in.
ON_THE_HUB = "slipway import chat --hub Qwen/Qwen2.5-7B-Instruct"

Command = Callable[[str], tuple[int, str, str]]


def lines() -> Iterator[str]:
    """Yields the command lines of the page."""
    for block in BLOCKS:
        if block.language == "sh":
            yield from (line.strip() for line in block.text.splitlines())


@pytest.fixture
def command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slipway_command: Callable[..., tuple[int, str, str]],
) -> Command:
    """Runs the command line of the page that begins so, in a new project."""
    monkeypatch.chdir(write_project(tmp_path, {}))

    def run(begin: str) -> tuple[int, str, str]:
        (line,) = [each for each in lines() if each.startswith(begin) and each != ON_THE_HUB]
        return slipway_command(*shlex.split(line)[1:])

    return run


def test_every_command_of_the_page_is_run_here() -> None:
    assert [line.partition(" ")[2] for line in lines()] == [
        "import chat --properties old/chat --instance ml.g5.12xlarge",
        "import chat --call call.json",
        f"import chat --endpoint {NAME} --region {REGION}",
        ON_THE_HUB.partition(" ")[2],
        "import chat --hub build/chat --instance ml.g5.2xlarge",
        "validate",
        "plan chat --env production --allow-unpublished",
    ]
    assert REMOVAL.strip() == f"aws sagemaker delete-endpoint --endpoint-name {NAME}"


def test_a_folder_becomes_a_config_that_plans(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "old" / "chat"
    folder.mkdir(parents=True)
    (folder / "serving.properties").write_text(PROPERTIES, "utf-8")
    assert command("slipway import chat --properties") == (0, PRINTED, "")
    code, output, errors = command("slipway validate")
    assert (code, errors) == (0, "")
    assert output.startswith("1 model")
    code, output, _ = command("slipway plan chat")
    assert code == 0
    assert "ml.g5.12xlarge" in output


def test_the_arguments_of_a_call_become_a_config(command: Command, tmp_path: Path) -> None:
    given = {
        "image_uri": IMAGE,
        "model_data": "s3://acme-models/llama-2-7b/",
        "env": {"OPTION_MAX_MODEL_LEN": "4096"},
        "role": "arn:aws:iam::210987654321:role/notebook",
    }
    exec(PROGRAM, given)  # noqa: S102 - the program of the page
    assert json.loads((tmp_path / "call.json").read_text("utf-8"))["model"]["image_uri"] == IMAGE
    code, output, errors = command("slipway import chat --call")
    assert (code, errors) == (0, "")
    assert output.startswith("model_configs/chat.yaml written, with ")


def test_an_endpoint_becomes_a_config(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    aws = FakeAws(answers())
    monkeypatch.setattr(
        "slipway.importing.live_endpoint.open_shell_access", lambda region: (aws, region)
    )
    code, output, errors = command("slipway import chat --endpoint")
    assert (code, errors) == (0, "")
    assert output.startswith("model_configs/chat.yaml written, with ")
    assert f". {NAME} goes on as it is" in output


def test_a_folder_with_a_checkpoint_becomes_a_config(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "build" / "chat"
    folder.mkdir(parents=True)
    shape = {"num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28,
             "num_key_value_heads": 4, "max_position_embeddings": 32768}  # fmt: skip
    config = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "torch_dtype":
              "bfloat16", **shape}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    (folder / "model.safetensors").write_bytes(safetensors({"w": ("BF16", [1000, 1000])}))
    code, output, errors = command("slipway import chat --hub build/chat")
    assert (code, errors) == (0, "")
    assert output.startswith("model_configs/chat.yaml written, with ")
