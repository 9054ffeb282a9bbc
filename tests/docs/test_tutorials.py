"""The tutorials, run from the pages' own text as a reader copies it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import copy_project
from embedded_aws import control
from tests.support.page_runs import free_port, run_page
from tests.support.pages import ROOT, blocks

TUTORIALS = ROOT / "docs" / "tutorials"
# The shell blocks that are not run, by their first lines: the set-up, which CI does before its
# tests, the copy of the reader's own checkpoint, and what needs Docker or an AWS account.
LEFT_OUT = {
    "own-gpt2.md": ["make setup", "cp -rL ~/models/my-gpt2 my-checkpoint"],
    "own-bert.md": ["make setup", "cp -rL ~/models/my-bert my-checkpoint"],
    "vllm-on-a-gpu.md": [
        "make setup",
        "cdk bootstrap -c env=production",
        "slipway invoke my-llm --env production",
        "cdk destroy my-llm -c models=my-llm -c env=production",
    ],
    "own-container.md": [
        "docker build --platform linux/amd64",
        "aws ecr create-repository --repository-name my-container",
    ],
    "failing-canary.md": [],
}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    copy_project(tmp_path)
    yield tmp_path
    control.stop(tmp_path)


@pytest.mark.cdk
@pytest.mark.torch
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("own-gpt2.md", marks=pytest.mark.size("all")),
        # tests/embedded/lifecycle/test_neuron_compiled.py goes the same way in `make test-all`.
        pytest.param("own-bert.md", marks=pytest.mark.size("deep")),
    ],
)
def test_an_own_checkpoint_answers_on_the_embedded_aws(project: Path, name: str) -> None:
    run_page(TUTORIALS / name, project)
    # What the reader changed is as it was, but for the model.
    environments = project / "environments.yaml"
    assert environments.read_bytes() == (ROOT / "environments.yaml").read_bytes()
    (lock,) = project.glob("model_configs/my-*.lock.json")
    (entry,) = json.loads(lock.read_text("utf-8"))["environments"].values()
    assert entry["compiled"]["target"] == "cpu"


@pytest.mark.size("all")
def test_a_language_model_is_planned_as_the_page_says(project: Path) -> None:
    page = TUTORIALS / "vllm-on-a-gpu.md"
    (production,) = (each.text for each in blocks(page) if each.labels == ("environments",))
    with (project / "environments.yaml").open("a", encoding="utf-8") as environments:
        environments.write(f"\n{production}")
    run_page(page, project)


@pytest.mark.size("all")
def test_a_container_of_ones_own_keeps_the_contract(project: Path) -> None:
    run_page(TUTORIALS / "own-container.md", project, {"8080": str(free_port())})


@pytest.mark.cdk
@pytest.mark.size("all")
@pytest.mark.timeout(900)
def test_a_failing_canary_is_undone_and_told(project: Path) -> None:
    before = (project / "model_configs/gpt2-autocomplete.yaml").read_bytes()
    run_page(TUTORIALS / "failing-canary.md", project)
    assert (project / "model_configs/gpt2-autocomplete.yaml").read_bytes() == before
    assert not (project / "ask.py").exists()


def test_every_tutorial_is_run() -> None:
    assert sorted(LEFT_OUT) == sorted(path.name for path in TUTORIALS.glob("*.md"))


@pytest.mark.parametrize("name", LEFT_OUT)
def test_only_what_cannot_run_here_is_left_out(name: str) -> None:
    left_out = [
        block.text.splitlines()[0]
        for block in blocks(TUTORIALS / name)
        if block.language == "sh" and block.labels != ("run",)
    ]
    assert len(left_out) == len(LEFT_OUT[name])
    for line, expected in zip(left_out, LEFT_OUT[name], strict=True):
        assert line.startswith(expected)
