"""`slipway init`: missing options are asked for on a terminal, and named elsewhere."""

import io
import re

import pytest

from tests.unit.cli.first_configs import FLAGS, written

FAMILY_QUESTION = "Architecture of the network"
PARAMETERS_QUESTION = "Number of its weights"
INSTANCE_QUESTION = "Hosting instance type"
WEIGHTS_QUESTION = "Weights (hub:OWNER/NAME@REVISION, s3://BUCKET/PREFIX/ or a directory)"
LATENCY_QUESTION = "99th percentile of the answers to stay under, in ms"
TASK_QUESTION = (
    "Task (question-answering, sequence-classification, token-classification, embeddings)"
)
REPOSITORY_QUESTION = "Directory of your model repository"
QUESTIONS = (
    FAMILY_QUESTION, PARAMETERS_QUESTION, INSTANCE_QUESTION, WEIGHTS_QUESTION, LATENCY_QUESTION,
    TASK_QUESTION, REPOSITORY_QUESTION,
)  # fmt: skip


@pytest.fixture
def run(slipway):
    return slipway.of("init")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (FLAGS[:4], "--instance, --sample or --weights, --latency-milliseconds"),
        (
            (),
            "--family, --parameters, --instance, --sample or --weights, --latency-milliseconds",
        ),
        (("--container", "custom", *FLAGS[:8]), "--latency-milliseconds, --image-uri"),
        (("--container", "neuron", *FLAGS[:8]), "--latency-milliseconds, --task"),
        (("--container", "triton", *FLAGS), "--repository"),
        (("--container", "lmi", *FLAGS[:6], *FLAGS[8:]), "--sample or --weights"),
    ],
)  # fmt: skip
def test_without_a_terminal_all_missing_options_are_named(run, tmp_path, arguments, named):
    errors = run.refused("search", *arguments)
    assert errors == (
        "1 problem\n- some options are missing, and there is no terminal to ask for them [SW410]\n"
        f"    Give {named}.\n"
    )
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


class Terminal(io.StringIO):
    """A terminal at which lines are typed."""

    def isatty(self):
        return True


def typed(monkeypatch, answers):
    lines = [text for texts in answers.values() for text in texts]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(lines) + "\n"))


def asked(output):
    """The questions in their order, each as often as it was asked."""
    return re.findall("|".join(map(re.escape, QUESTIONS)), output)


def test_on_a_terminal_it_asks_for_what_no_option_says(run, tmp_path, monkeypatch):
    answers = {
        FAMILY_QUESTION: ["gpt2"],
        INSTANCE_QUESTION: ["ml.g5.xlarge"],
        REPOSITORY_QUESTION: ["triton/search"],
    }
    typed(monkeypatch, answers)
    options = ("--parameters", "124439808", "--latency-milliseconds", "600")
    assert asked(run.done("search", "--container", "triton", *options)) == list(answers)
    content = written(tmp_path)
    assert content["endpoint"]["instances"] == ["ml.g5.xlarge"]
    assert content["serving"]["repository"] == "triton/search"
    assert "artifacts" not in content


def test_the_container_follows_from_the_family_that_was_asked_for(run, tmp_path, monkeypatch):
    answers = {
        FAMILY_QUESTION: ["bert"],
        PARAMETERS_QUESTION: ["110000000"],
        INSTANCE_QUESTION: ["ml.inf2.xlarge"],
        WEIGHTS_QUESTION: ["s3://my-models/search/"],
        LATENCY_QUESTION: ["900"],
        TASK_QUESTION: ["embeddings"],
    }
    typed(monkeypatch, answers)
    assert asked(run.done("search")) == list(answers)
    assert written(tmp_path)["serving"]["container"] == "neuron"


def test_a_wrong_answer_is_refused_at_once_and_asked_for_again(run, tmp_path, monkeypatch):
    (tmp_path / "build/search").mkdir(parents=True)
    answers = {
        FAMILY_QUESTION: ["gpt 2", "bert"],
        PARAMETERS_QUESTION: ["a lot", "7.5", "-5", "1.1e8"],
        INSTANCE_QUESTION: ["ml.inf1.xlage", "ml.inf1.xlarge"],
        WEIGHTS_QUESTION: ["hub:owner/name@main", "hub:owner/name", "nowhere", "build/search"],
        LATENCY_QUESTION: ["0", "900"],
        TASK_QUESTION: ["qa", "question-answering"],
    }
    typed(monkeypatch, answers)
    output = run.done("search", "--container", "neuron")
    assert asked(output) == [question for question, texts in answers.items() for _ in texts]
    said = output.split("Error: ")[1:]
    assert len(said) == sum(len(texts) - 1 for texts in answers.values())
    assert not any("has length" in line for line in said)
    for words in (
        "'a lot' is not a whole number. Write it as `7600000000` or `7.6e9`.",
        "'7.5' is not a whole number.",
        '"ml.inf1.xlage" is not a known hosting instance type. Did you mean `ml.inf1.xlarge`?',
        "nowhere is not a directory of this project. Copy it to ",
        "names no commit",
    ):
        assert any(words in line for line in said), words
    content = written(tmp_path)
    assert content["model"]["parameters"] == 110_000_000
    assert content["artifacts"]["weights"] == {"source": "path", "path": "build/search"}
    assert content["serving"]["task"] == "question-answering"
