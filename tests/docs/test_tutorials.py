"""The tutorials, run from the pages' own text as a reader copies it.

The page on own models has a section for each kind of model. Each one runs with the steps before and
after it that all of them share.
"""

import json
from pathlib import Path

import pytest

from tests.support.page_runs import free_port, run_page
from tests.support.pages import ROOT, blocks

OWN_MODEL = ROOT / "docs" / "own-model.md"
CANARY = ROOT / "docs" / "tutorials" / "failing-canary.md"
START, STOP = "Start the embedded AWS", "Stop the embedded AWS"
# The sections that a run takes from the page, by the kind of model.
RUNS = {
    "A GPT-2 checkpoint": {START, "A GPT-2 checkpoint", STOP},
    "A BERT checkpoint": {START, "A BERT checkpoint", STOP},
    "A large language model": {"A large language model"},
    "An image of your own": {START, "An image of your own", STOP},
}
# The shell blocks that are not run, by their first lines: the set-up, which CI does before its
# tests, the copy of the reader's own checkpoint, Triton, and what needs the Hub, Docker or an AWS
# account.
LEFT_OUT = [
    ("Set up", "make setup"),
    ("Set up", "cp -rL ~/models/my-model my-checkpoint"),
    ("A large language model", "slipway init my-llm --hub Qwen/Qwen2.5-7B-Instruct"),
    ("A T5 checkpoint or a Triton repository", "make triton"),
    ("A T5 checkpoint or a Triton repository", "slipway init my-t5 --weights my-checkpoint"),
    ("A T5 checkpoint or a Triton repository", "slipway init my-models --container triton"),
    ("An image of your own", "docker build --platform linux/amd64"),
    ("An image of your own", "aws ecr create-repository --repository-name my-container"),
    ("Deploy to an account", "cdk bootstrap -c env=production"),
    ("Deploy to an account", "slipway invoke my-llm --env production"),
    ("Deploy to an account", "cdk destroy my-llm -c models=my-llm -c env=production"),
]


@pytest.mark.cdk
@pytest.mark.torch
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "section",
    [
        pytest.param("A GPT-2 checkpoint", marks=pytest.mark.size("all")),
        # tests/embedded/lifecycle/test_compiled.py goes the same way in `make test-all`.
        pytest.param("A BERT checkpoint", marks=pytest.mark.size("deep")),
    ],
)
def test_an_own_checkpoint_answers_on_the_embedded_aws(project: Path, section: str) -> None:
    run_page(OWN_MODEL, project, sections=RUNS[section])
    # What the reader changed is as it was, but for the model.
    environments = project / "environments.yaml"
    assert environments.read_bytes() == (ROOT / "environments.yaml").read_bytes()
    (lock,) = project.glob("model_configs/my-*.lock.json")
    (entry,) = json.loads(lock.read_text("utf-8"))["environments"].values()
    assert entry["compiled"]["target"] == "cpu"


@pytest.mark.size("all")
def test_a_language_model_is_planned_as_the_page_says(project: Path) -> None:
    (production,) = (each.text for each in blocks(OWN_MODEL) if each.labels == ("environments",))
    with (project / "environments.yaml").open("a", encoding="utf-8") as environments:
        environments.write(f"\n{production}")
    run_page(OWN_MODEL, project, sections=RUNS["A large language model"])


@pytest.mark.cdk
@pytest.mark.size("all")
def test_a_container_of_ones_own_keeps_the_contract_and_is_deployed(project: Path) -> None:
    port = {"8080": str(free_port())}
    run_page(OWN_MODEL, project, port, sections=RUNS["An image of your own"])


@pytest.mark.cdk
@pytest.mark.size("all")
@pytest.mark.timeout(900)
def test_a_failing_canary_is_undone_and_told(project: Path) -> None:
    before = (project / "model_configs/gpt2-autocomplete.yaml").read_bytes()
    run_page(CANARY, project)
    assert (project / "model_configs/gpt2-autocomplete.yaml").read_bytes() == before
    assert not (project / "ask.py").exists()


def test_every_section_is_run() -> None:
    run = {block.section for block in blocks(OWN_MODEL) if block.labels == ("run",)}
    assert run == set().union(*RUNS.values())


def test_only_what_cannot_run_here_is_left_out() -> None:
    left_out = [
        (block.section, block.text.splitlines()[0])
        for page in (OWN_MODEL, CANARY)
        for block in blocks(page)
        if block.language == "sh" and block.labels != ("run",)
    ]
    assert len(left_out) == len(LEFT_OUT)
    for (section, line), (expected_section, expected) in zip(left_out, LEFT_OUT, strict=True):
        assert section == expected_section
        assert line.startswith(expected)
