"""`slipway fit`: what it ranks, what it leaves out, and what it refuses."""

import pytest

from tests.support.pages import ROOT
from tests.support.projects import write_project
from tests.unit.cli.first_configs import ENVIRONMENTS

GOAL = ("--rate", "2", "--p99", "20000", "--tokens", "500,200")
TWO = ("--instances", "ml.g6e.xlarge,ml.g5.2xlarge")
UNKNOWN = (
    ("qwen3-embedding", "no measurement is of models that write no text"),
    ("bert-qa-inf2", "no measurement is of the container `neuron`"),
    ("drafted", "no measurement is of speculative decoding with this draft"),
    ("shapeless", "`model` does not give vocabulary_size"),
)


@pytest.fixture
def run(tmp_path, monkeypatch, slipway_command):
    texts = {
        name: (ROOT / "model_configs" / f"{name}.yaml").read_text("utf-8")
        for name in ("qwen3-8b", "qwen3-30b-a3b-fp8", "qwen3-embedding", "bert-qa-inf2")
    }
    for name, old, new in (
        ("drafted", "  options:\n", '  options:\n    speculative_config: "{}"\n'),
        ("shapeless", "  vocabulary_size: 151936\n", ""),
    ):
        texts[name] = texts["qwen3-8b"].replace("qwen3-8b", name, 1).replace(old, new)
    monkeypatch.chdir(write_project(tmp_path, texts, environments=ENVIRONMENTS))
    return slipway_command.of("fit")


def fitted(run, *arguments):
    return run.document("qwen3-8b", *arguments)


def messages(run, *arguments):
    return [each["message"] for each in run.problems(*arguments)]


def test_types_are_ranked_by_cost_with_bands(run):
    found = fitted(run, "--rate", "0.5", *GOAL[2:], *TWO)
    assert [each["instance_type"] for each in found["ranked"]] == ["ml.g5.2xlarge", "ml.g6e.xlarge"]
    first = found["ranked"][0]
    for name in ("instances", "p99_seconds", "token_seconds", "usd_per_month"):
        value = first[name]
        assert 0 < value["low"] <= value["expected"] <= value["high"]
    assert first["p99_seconds"]["expected"] <= 20
    assert first["basis"] == "extrapolated"
    assert first["usd_per_month"]["expected"] == pytest.approx(
        first["usd_per_hour"] * 730 * first["instances"]["expected"]
    )
    # 0.5 requests a second, 730 hours: 1.314 million requests of 200 tokens.
    a_million = first["usd_per_month"]["expected"] / 1.314
    assert first["usd_per_million_requests"]["expected"] == pytest.approx(a_million, rel=1e-3)
    assert first["usd_per_million_tokens"]["expected"] == pytest.approx(a_million / 200, rel=1e-3)


def test_throughput_grows_with_the_clients_and_traffic_needs_more_instances(run, tmp_path):
    found = fitted(run, *GOAL[:4], *TWO)
    assert found["goal"]["input_tokens"] == 1024
    levels = found["ranked"][0]["levels"]
    assert [each["concurrency"] for each in levels] == [1, 2, 4, 8, 16]
    rates = [each["tokens_per_second"]["expected"] for each in levels]
    assert rates == sorted(rates)
    counts = [
        fitted(run, "--rate", rate, *GOAL[2:], *TWO)["ranked"][0]["instances"]["expected"]
        for rate in ("1", "10", "100")
    ]
    assert counts[0] < counts[1] < counts[2]
    (tmp_path / "times.csv").write_text("".join(f"{each / 5}\n" for each in range(600)))
    goal = fitted(run, "--traffic", "times.csv", *GOAL[2:], *TWO)["goal"]["traffic"]
    assert goal["peak"] == pytest.approx(5.0, rel=0.02)


def test_a_kept_beginning_of_prompts_is_not_computed_again(run):
    goal = ("--rate", "0.1", "--p99", "60000", "--tokens", "4000,20", *TWO)
    whole, kept = (
        fitted(run, *goal, *more)["ranked"][0]["levels"][0]
        for more in ((), ("--cached-tokens", "3900"))
    )
    assert kept["first_token_seconds"]["expected"] < whole["first_token_seconds"]["expected"] / 5
    assert kept["request_seconds"]["expected"] < whole["request_seconds"]["expected"]


def test_each_type_has_a_place_or_a_reason(run):
    found = fitted(run, *GOAL)
    reasons = {each["instance_type"]: each["reason"] for each in found["left_out"]}
    assert reasons["ml.g4dn.xlarge"] == "no measurement is on NVIDIA T4 (sm75)"
    assert reasons["ml.inf2.xlarge"] == "no measurement is on AWS Inferentia2"
    assert {each["instance_type"] for each in found["ranked"]}.isdisjoint(reasons)
    assert {"ml.g5.xlarge", "ml.p5e.48xlarge"} <= {e["instance_type"] for e in found["ranked"]}


@pytest.mark.parametrize(
    ("option", "value", "beginning"),
    [
        ("--cached-tokens", "-1", "`--cached-tokens -1` is not less than the prompt's 500"),
        ("--cached-tokens", "500", "`--cached-tokens 500` is not less than the prompt's 500"),
        (
            "--p99",
            "100",
            "no instance type holds a p99 of 100 ms: of 70 types, ml.p5e.48xlarge is the fastest: ",
        ),
    ],
)
def test_what_no_type_and_no_prompt_can_be_is_refused(run, option, value, beginning):
    (message,) = messages(run, "qwen3-8b", *GOAL, option, value)
    assert message.startswith(beginning)


def test_memory_is_what_plan_counts_and_a_model_that_is_too_large_says_by_how_much(
    run, slipway_command
):
    memory = fitted(run, *GOAL, "--instances", "ml.g5.2xlarge")["ranked"][0]["memory"]
    planning = slipway_command.of("plan", "qwen3-8b", "--env", "ci", "--allow-unpublished")
    planned = planning.document()["memory"]
    assert memory["weights_gib"] == planned["weights_gib"]
    assert memory["available_gib"] == planned["available_gib"]
    # 16 requests of 700 tokens, where the plan has 16 of 1,536.
    assert memory["cache_gib"] == pytest.approx(planned["cache_gib"] * 700 / 1536, rel=0.02)
    types = "ml.g6e.xlarge,ml.g5.xlarge"
    found = run.document("qwen3-30b-a3b-fp8", *GOAL, "--instances", types)
    assert [each["instance_type"] for each in found["ranked"]] == ["ml.g6e.xlarge"]
    assert [each["reason"] for each in found["left_out"]] == [
        "30,532,122,624 weights in fp8 take 29.1 GiB; ml.g5.xlarge has 22.4 GiB (NVIDIA A10G), of "
        "which vLLM takes 90 %"
    ]


def test_the_text_names_the_goal_the_band_and_the_reasons(run):
    types = "ml.p5e.48xlarge,ml.g6e.xlarge,ml.g4dn.xlarge,ml.m5.xlarge"
    lines = run.done("qwen3-8b", *GOAL, "--instances", types).splitlines()
    assert lines[0] == (
        "For 2 requests a second, prompts of 500 tokens and answers of 200, 99 of 100 within "
        "20000 ms."
    )
    # A type without a price is ranked last.
    assert "1. ml.g6e.xlarge, extrapolated" in lines
    last = lines.index("2. ml.p5e.48xlarge, extrapolated")
    assert "   cost                unknown: no published price in us-east-1" in lines[last:]
    # The slow end of the band has no p99.
    (line,) = [line for line in lines[:last] if line.lstrip().startswith("p99 ")]
    assert line.endswith(" to none] ms, waiting included")
    assert "- ml.g4dn.xlarge: no measurement is on NVIDIA T4 (sm75)" in lines
    assert "- ml.m5.xlarge: it has no accelerator" in lines


def test_every_wrong_option_is_named_at_once(run):
    assert messages(run, "--rate", "-1", "--tokens", "5", "--instances", "ml.g5.1xlarge") == [
        "NAME or `--hub` says which model",
        "`--rate -1.0` is not above 0 and below a million",
        "`--p99` needs a limit above 0",
        "`--tokens 5` is not two numbers above 0",
        "there is no instance type 'ml.g5.1xlarge'",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "times.csv cannot be read: No such file or directory"),
        (b"\xff\xfe\xfa", "times.csv cannot be read: it is no text"),
        (b"0\nsoon\n", "'soon' is no time"),
        (b"", "the file has no two different times"),
    ],
)
def test_a_trace_that_cannot_be_used_is_refused(run, tmp_path, content, message):
    if content is not None:
        (tmp_path / "times.csv").write_bytes(content)
    assert messages(run, "qwen3-8b", "--traffic", "times.csv", *GOAL[2:]) == [message]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("qwen3-9b", *GOAL), "no model config matches 'qwen3-9b'"),
        (("qwen3-8b", *GOAL, "--traffic", "times.csv"),
         "`--rate` or `--traffic` says how many requests come"),
        (("qwen3-8b", *GOAL[:4], "--tokens", "40000,1000"),
         "40000 and 1000 tokens are more than the network's 40960 positions"),
        (("qwen3-8b", *GOAL, "--instances", "ml.g4dn.xlarge"),
         "no instance type holds a p99 of 20000 ms: ml.g4dn.xlarge: no measurement is on NVIDIA T4 "
         "(sm75)"),
        *(((name, *GOAL), f"nothing can be predicted: {reason}") for name, reason in UNKNOWN),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused(run, arguments, message):
    assert messages(run, *arguments) == [message]
