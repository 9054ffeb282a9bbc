"""What `slipway review` prints for each kind of change, and that its harmless twin does less.

`tests/operations/test_consequences.py` compares the same verdicts with what the embedded AWS does.
`pytest tests/golden --update-golden` writes the file anew.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from slipway.cli.review_text import as_markdown, as_text
from slipway.codes.code import Code
from slipway.errors import Kind as ProblemKind
from slipway.errors import Problem
from slipway.operations.reviewing import ChangeReview, review_change
from slipway.planning.consequences import consequences_of
from slipway.planning.review import ModelReview
from slipway.project import Project
from tests.support.golden_texts import compare_golden
from tests.support.plans import plan_for
from tests.support.projects import (
    ENVIRONMENTS,
    config_text,
    lock_variants,
    model_config,
    write_project,
)

GOLDEN = Path(__file__).parent / "reviews.txt"
MODEL = "tiny"
Edit = Callable[[Path], None]

NETWORK = """\
  network:
    vpc_id: vpc-0a1b2c3d
    subnet_ids: [subnet-0a1b2c3d]
"""
QUEUE = "mode: async\n  async_inference: {input: s3://in/requests/, output: s3://out/answers/}"
SCALING = """\
alarms:
  model_latency_p99_milliseconds: 600

autoscaling:
  min_instance_count: 2
  max_instance_count: 6
  target_invocations_per_instance_per_minute: 600
"""


def config(*edits: tuple[str, str]) -> Edit:
    def edit(root: Path) -> None:
        path = root / "model_configs" / f"{MODEL}.yaml"
        text = path.read_text("utf-8")
        for old, new in edits:
            assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        path.write_text(text, "utf-8")

    return edit


def endpoint(lines: str) -> Edit:
    return config(("endpoint:\n", f"endpoint:\n  {lines}\n"))


def file(name: str, *edits: tuple[str, str]) -> Edit:
    def edit(root: Path) -> None:
        path = root / name
        text = path.read_text("utf-8")
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, "utf-8")

    return edit


def removed(root: Path) -> None:
    for path in (root / "model_configs").glob(f"{MODEL}.*"):
        path.unlink()


def renamed(root: Path) -> None:
    config((f"name: {MODEL}", "name: other"))(root)
    for path in (root / "model_configs").glob(f"{MODEL}.*"):
        path.rename(path.with_name(path.name.replace(MODEL, "other", 1)))


def with_another_suffix(root: Path) -> None:
    path = root / "model_configs" / f"{MODEL}.yaml"
    path.rename(path.with_suffix(".yml"))


def added(root: Path) -> None:
    other = config_text("other", ("  sample:\n    path: samples/tiny\n", ""))
    (root / "model_configs" / "other.yaml").write_text(other, "utf-8")


def two_models(root: Path) -> None:
    variants = """\
  variants:
    - {name: stable, weight: 9}
    - name: candidate
      weight: 1
      serving: {max_batch_size: 4}
      artifacts: {release: {path: build/candidate}}
"""
    config(("endpoint:\n", f"endpoint:\n{variants}"))(root)
    lock_variants(root, MODEL, "production")


def unchanged(_: Path) -> None:
    pass


LOCK = f"model_configs/{MODEL}.lock.json"


@dataclass(frozen=True)
class Kind:
    """A kind of change, the verdict that a reviewer needs, and a change that only looks like it."""

    edit: Edit
    verdict: str
    twin: Edit
    twin_verdict: str | None = None
    base: Edit = unchanged


KINDS: Mapping[str, Kind] = {
    "another instance type": Kind(
        config(("[ml.g4dn.xlarge]", "[ml.g5.xlarge]"), ("target: sm75", "target: sm86")),
        "new fleet",
        config(("[ml.g4dn.xlarge]", "\n  - ml.g4dn.xlarge")),
    ),
    "more instances at creation": Kind(
        config(("instance_count: 2\n  model_", "instance_count: 3\n  model_")),
        "new fleet",
        config(("  max_instance_count: 6", "  max_instance_count: 8")),
        "in place",
    ),
    "another mode": Kind(
        config(
            ("endpoint:\n", f"endpoint:\n  {QUEUE}\n"),
            ("target_invocations_per_instance_per_minute: 600", "target_backlog_per_instance: 5"),
        ),
        "refused by AWS",
        endpoint("mode: realtime"),
    ),
    "removed": Kind(
        removed, "removed", config(("description: A model to test with\n", "")), "in place"
    ),
    "renamed": Kind(renamed, "renamed", with_another_suffix),
    "added": Kind(
        added, "new", file("environments.yaml", ("production:", "# comment\nproduction:"))
    ),
    "open network": Kind(
        endpoint("network_isolation: false"), "new fleet", endpoint("network_isolation: true")
    ),
    "another role": Kind(
        endpoint("execution_role_arn: arn:aws:iam::210987654321:role/serving"),
        "new fleet",
        config(("name: tiny\n", "name: tiny\ntags: {team: search}\n")),
        "in place",
    ),
    "a network": Kind(
        file("environments.yaml", ("production:\n", f"production:\n{NETWORK}")),
        "new fleet",
        file("environments.yaml", ("on-call@example.com", "team@example.com")),
    ),
    "captured data": Kind(
        endpoint("data_capture: {destination: s3://captured/requests/, sampling_percent: 10}"),
        "new fleet",
        endpoint("data_capture: null"),
    ),
    "other weights": Kind(
        file(LOCK, ("ab" * 32, "bc" * 32)), "new fleet", file(LOCK, ("  ", "    "))
    ),
    "a setting of the container": Kind(
        config(("default_new_tokens: 12", "default_new_tokens: 20")),
        "new fleet",
        config(("default_new_tokens: 12", "default_new_tokens: 0xc")),
    ),
    "a time-out": Kind(
        config(("check_timeout_seconds: 600", "check_timeout_seconds: 900")),
        "new fleet",
        config(("check_timeout_seconds: 600", "check_timeout_seconds: 600  # ten minutes")),
    ),
    "a rollout": Kind(
        config(("alarms:\n", "rollout: {strategy: linear, step_percent: 50}\n\nalarms:\n")),
        "new fleet",
        config(("alarms:\n", "# rollout: {strategy: linear}\n\nalarms:\n")),
    ),
    "a variant of another model": Kind(
        two_models, "new fleet", config(("endpoint:\n", "endpoint:\n  variants: []\n"))
    ),
    "other weights of variants": Kind(
        config(("weight: 1\n", "weight: 3\n")),
        "in place",
        config(("weight: 1\n", "weight: 1.0\n")),
        base=two_models,
    ),
    "a target": Kind(
        config(("per_minute: 600", "per_minute: 300")),
        "in place",
        config(("per_minute: 600", "per_minute: 600.0")),
    ),
    "another region": Kind(
        file("environments.yaml", ("eu-west-1", "us-west-2")),
        "needs destroy",
        file("environments.yaml", ("region: eu-west-1", 'region: "eu-west-1"')),
    ),
}


def reviewed(tmp_path: Path, edit: Edit, base: Edit = unchanged) -> ChangeReview:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    text = config_text(MODEL).replace(SCALING.split("\n\n", maxsplit=1)[0] + "\n", SCALING)
    write_project(before, {MODEL: text}, published=[MODEL], environments=ENVIRONMENTS)
    base(before)
    shutil.copytree(before, after)
    edit(after)
    return review_change(Project(after), Project(before), "main", [], None)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_change_has_its_verdict_and_its_text(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
):
    kind = KINDS[name]
    found = reviewed(tmp_path, kind.edit, kind.base)
    assert not found.problems
    assert kind.verdict in [each.verdict for each in found.models]
    compare_golden(request, GOLDEN, KINDS, name, as_text(found, {}))


@pytest.mark.parametrize("name", KINDS)
def test_its_harmless_twin_does_less(name: str, tmp_path: Path):
    kind = KINDS[name]
    found = reviewed(tmp_path, kind.twin, kind.base)
    assert not found.problems
    assert [each.verdict for each in found.models] == [kind.twin_verdict] * bool(kind.twin_verdict)


def test_a_comment_has_a_row_for_each_model_and_stays_in_its_cells(tmp_path: Path):
    found = reviewed(tmp_path, config(("A model to test with", "a | <b>bold</b>")))
    text = as_markdown(found, {"production": "-a\n+b\n"})
    assert text.startswith("<!-- slipway review -->\n### Compared with main\n")
    assert "| `tiny` | production | **in place**: the fleet stays |" in text
    assert "a \\| &lt;b>bold&lt;/b>" in text
    assert "<details><summary>Templates of production</summary>\n\n````diff\n-a\n+b\n````" in text


HOSTILE = (
    "a | b <img src=x onerror=y> <!-- c --> *d* **e** _f_ __g__ ~~h~~ ~i~ `j` ``k`` l` $m$ "
    "[n](https://example.com) ![o](p) &lt; &amp; @team @org/team #12 o/r#34 \\| \\` q\\"
)


@pytest.mark.parametrize("text", [HOSTILE, "# a\r# b\n- c\u2028> d", "`|` | `a|b`", "``a``b`"])
def test_text_of_a_config_stays_text_in_a_comment(text: str, tmp_path: Path):
    found = reviewed(tmp_path, lambda _: None)
    effects = consequences_of([("description", "old", text)], plan_for(model_config(name=MODEL)))
    review = ModelReview(MODEL, "production", "in place", text, effects, warnings=(text,))
    problem = Problem(Code.NO_PROJECT, ProblemKind.STATE, text, "remedy")
    found = replace(found, base=text, models=(review,), problems=(problem,))
    renderer = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    html = renderer.render(as_markdown(found, {})).removeprefix("<!-- slipway review -->\n")
    page = ElementTree.fromstring(f"<page>{html}</page>".replace("<br>", " "))  # noqa: S314  # own
    assert {each.tag for each in page.iter()} - {"code"} == {
        *("page", "h3", "h4", "table", "thead", "tbody", "tr", "th", "td", "strong", "ul", "li"),
    }
    shown = "".join(page.itertext())
    # GitHub would link them.
    assert not re.search(r"(?<!\w)@\w|#\d", shown)
    plain = " ".join(text.split()).replace("`", "")
    assert shown.replace("\u200b", "").replace("`", "").count(plain) == 4 + ("\n" not in text)
