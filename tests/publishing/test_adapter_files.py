"""The files of a LoRA adapter: which are taken, which vLLM loads, and whether they fit the base."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.config.schema import ModelConfig
from slipway.config.sections.artifacts import PathWeights
from slipway.errors import UserError
from slipway.planning.families import deployment_of
from slipway.publishing.adapters import (
    CONFIG,
    WEIGHTS,
    adapter_facts,
    adapter_files,
    check_packaged,
    network_problems,
)
from slipway.publishing.file_set import FileSet, directory_files
from tests.publishing.checkpoints import tensors
from tests.support.golden_cases import CASES
from tests.support.projects import PRODUCTION, write_files

PEFT: dict[str, Any] = {"peft_type": "LORA", "r": 4, "base_model_name_or_path": "Qwen/Qwen2.5-7B"}
MODULE = "base_model.model.model.layers.{layer}.self_attn.q_proj.lora_{side}.weight"
SHAPES = {
    MODULE.format(layer=1, side="A"): (4, 32),
    MODULE.format(layer=1, side="B"): (64, 4),
}
PLACE = PathWeights(source="path", path="adapter")
NETWORK = {"1.self_attn.q_proj": (64, 32), "1.mlp.down_proj": (32, 128)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / CONFIG).write_text(json.dumps(PEFT))
    (tmp_path / WEIGHTS).write_bytes(tensors(SHAPES))
    (tmp_path / "optimizer.pt").write_bytes(b"x")
    (tmp_path / "model.py").write_text("def handle(): ...")
    return tmp_path


def files(folder: Path) -> FileSet:
    names = [path.name for path in folder.iterdir()]
    return adapter_files(directory_files(folder, "adapter", names), PLACE)


def told(error: pytest.ExceptionInfo[UserError]) -> str:
    return str(error.value).splitlines()[1]


def test_the_two_files_of_an_adapter_are_taken(folder: Path) -> None:
    assert sorted(files(folder).sizes_bytes) == [CONFIG, WEIGHTS]
    facts = adapter_facts(files(folder))
    assert facts == (4, "Qwen/Qwen2.5-7B", {"1.self_attn.q_proj": (32, 64)})
    assert list(network_problems(facts, NETWORK, "base")) == []


def test_a_folder_without_them_is_refused(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "adapter_model.bin")
    with pytest.raises(UserError) as caught:
        files(folder)
    assert told(caught).endswith("adapter has no adapter_model.safetensors [SW842]")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peft_type": "IA3"}, "adapter/adapter_config.json describes no LoRA adapter [SW842]"),
        ({"r": "8"}, "adapter/adapter_config.json describes no LoRA adapter [SW842]"),
        ({"use_dora": True}, "adapter/adapter_config.json has use_dora, which vLLM does not load"),
        ({"modules_to_save": ["lm_head"], "bias": "all"}, "has modules_to_save, bias, which vLLM"),
    ],
)
def test_what_vllm_does_not_load_is_refused(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    (folder / CONFIG).write_text(json.dumps({**PEFT, **change}))
    with pytest.raises(UserError) as caught:
        adapter_facts(files(folder))
    assert message in told(caught)


def test_a_huge_config_is_not_read(folder: Path) -> None:
    (folder / CONFIG).write_text(json.dumps({**PEFT, "padding": "x" * (1 << 20)}))
    with pytest.raises(UserError) as caught:
        adapter_facts(files(folder))
    assert told(caught).endswith("describes no LoRA adapter [SW842]")


def test_the_highest_rank_of_a_module_counts(folder: Path) -> None:
    higher = {MODULE.format(layer=0, side="A"): (8, 32), MODULE.format(layer=0, side="B"): (64, 8)}
    (folder / WEIGHTS).write_bytes(tensors({**SHAPES, **higher}))
    assert adapter_facts(files(folder)).rank == 8


@pytest.mark.parametrize(
    ("network", "fault"),
    [
        (
            {"1.self_attn.q_proj": (64, 48)},
            "1.self_attn.q_proj is 64 x 48 there, and 64 x 32 in the adapter",
        ),
        ({"0.self_attn.q_proj": (64, 32)}, "1.self_attn.q_proj is not there"),
        ({"1.attn.c_attn": (32, 96)}, "1.self_attn.q_proj is not there"),
        # Packed weights of a quantised base have no plain shape.
        ({"1.self_attn.q_proj": ()}, None),
        # An unpublished base tells nothing.
        ({}, None),
    ],
)
def test_an_adapter_of_another_network_is_refused(
    folder: Path, network: dict[str, tuple[int, ...]], fault: str | None
) -> None:
    facts = adapter_facts(files(folder))
    found = [each.message for each in network_problems(facts, network, "base")]
    start = "the adapter, which was trained for Qwen/Qwen2.5-7B, does not fit the network of `base`"
    assert [each.startswith(f"{start}: {fault}") for each in found] == [True] * bool(fault)


@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        ({}, []),
        (
            {"enable_lora": False},
            ["the weights have adapters (one, two), and the engine loads none"],
        ),
        ({"max_lora_rank": 1}, ["the adapter has rank 4, and `lora-base` loads ranks up to 1"] * 2),
    ],
)
def test_adapters_beside_weights_are_checked(
    tmp_path: Path, changed: dict[str, Any], faults: list[str]
) -> None:
    raw = yaml.safe_load((CASES / "lora-base.yaml").read_text("utf-8"))
    raw["serving"]["options"].update(changed)
    base = deployment_of(ModelConfig.model_validate(raw), PRODUCTION)
    written = {"model.safetensors": tensors({"model.layers.1.self_attn.q_proj.weight": (64, 32)})}
    for name in ("one", "two"):
        written[f"adapters/{name}/{CONFIG}"] = json.dumps(PEFT).encode()
        written[f"adapters/{name}/{WEIGHTS}"] = tensors(SHAPES)
    write_files(tmp_path, written)
    found = list[str]()
    try:
        check_packaged(base, directory_files(tmp_path, "base", written))
    except UserError as error:
        found = [each.message for each in error.problems]
    assert found == faults


def test_half_an_adapter_beside_weights_is_refused(tmp_path: Path) -> None:
    raw = yaml.safe_load((CASES / "lora-base.yaml").read_text("utf-8"))
    base = deployment_of(ModelConfig.model_validate(raw), PRODUCTION)
    write_files(tmp_path, {f"adapters/one/{CONFIG}": json.dumps(PEFT)})
    with pytest.raises(UserError) as caught:
        check_packaged(base, directory_files(tmp_path, "base", [f"adapters/one/{CONFIG}"]))
    assert "base/adapters/one has no adapter_model.safetensors [SW842]" in told(caught)
