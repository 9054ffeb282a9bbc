"""`slipway review`, and `slipway plan --against`: what a change does to each model."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from slipway.cli.review_text import as_markdown
from slipway.operations.against import project_at
from slipway.operations.reviewing import ChangeReview
from slipway.planning.review import ModelReview, Reach
from slipway.project import Project
from tests.support.projects import ENVIRONMENTS, config_text, write_project
from tests.support.repositories import commit, git, make_repository
from tests.support.shared_endpoints import guest_text, host_text

MODEL, OTHER = "tiny", "other"
ASYNC = "endpoint:\n  mode: async\n  async_inference: {input: s3://in/a/, output: s3://out/a/}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project in a folder of a repository, with two models and one commit behind an empty one."""
    root = tmp_path / "service"
    root.mkdir()
    make_repository(tmp_path)
    commit(tmp_path)
    git(tmp_path, "tag", "empty")
    # A link that leads nowhere is no obstacle.
    (root / "notes").symlink_to("/nowhere")
    texts = {name: config_text(name) for name in (MODEL, OTHER)}
    write_project(root, texts, published=[MODEL, OTHER])
    commit(tmp_path)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def review(project, slipway_command):
    return slipway_command.of("review", "--base", "HEAD")


def write(project: Path, *edits: tuple[str, str], name: str = MODEL) -> None:
    text = config_text(name, *edits)
    (project / "model_configs" / f"{name}.yaml").write_text(text, "utf-8")


LARGER = ("[ml.g4dn.xlarge]", "[ml.g4dn.2xlarge]")
BROKEN = ("family: gpt2", "family: gpt2\n  no_such_field: 1")


def verdicts(run: Any) -> tuple[int, dict[tuple[str, str], str]]:
    """Returns the exit code, and the verdicts by model and environment."""
    code, printed, _ = run("--json")
    models = json.loads(printed)["models"]
    return code, {(each["model"], each["environment"]): each["verdict"] for each in models}


def test_only_models_that_differ_are_named(project, review):
    assert review.done("--base", "main") == "No model's deployment changes.\n"
    write(project, LARGER)
    text = review.done()
    assert text.startswith("tiny in `production`\n  verdict    new fleet: 2 x ml.g4dn.2xlarge ")
    assert OTHER not in text
    # A pattern that the change does not touch.
    assert review.done("oth*") == "No model's deployment changes.\n"


def test_an_environment_of_one_side_makes_models_new(project, review):
    path = project / "environments.yaml"
    staging = 'staging:\n  account: "310987654321"\n  region: us-east-1\n'
    path.write_text(ENVIRONMENTS + staging, "utf-8")
    both = ((MODEL, "staging"), (OTHER, "staging"))
    assert verdicts(review) == (0, dict.fromkeys(both, "new"))
    assert "nowhere" in review.refused("--env", "nowhere")


def test_what_aws_refuses_and_what_takes_away_is_an_error(project, review):
    write(project, ("endpoint:\n", ASYNC))
    for path in (project / "model_configs").glob(f"{OTHER}.*"):
        path.unlink()
    code, text, error = review()
    assert code == 1
    assert "other in `production`\n  verdict  removed: its stack stays and is billed" in text
    assert "tiny in `production`: refused by AWS, no update does it" in error
    assert "[SW457]" in error
    assert "[SW458]" in error
    code, _, error = review("--allow-destructive")
    assert (code, "[SW457]" in error, "[SW458]" in error) == (1, True, False)
    write(project)
    review.done("--allow-destructive")
    assert [each["code"] for each in review.problems()] == ["SW458"]


def test_a_model_without_a_plan_is_reported_beside_the_others(project, review):
    write(project, LARGER)
    lock = project / "model_configs" / f"{OTHER}.lock.json"
    lock.write_text(f"<<<<<<< HEAD\n{lock.read_text('utf-8')}=======\n", "utf-8")
    code, text, error = review("--markdown")
    assert code == 1
    assert "| `tiny` | production | **new fleet**: " in text
    assert "model_configs/other.lock.json: not a lock file" in text
    assert "model_configs/other.lock.json: not a lock file" in error


def test_a_base_without_a_valid_plan_or_environments_is_unknown_and_no_error(project, review):
    write(project, BROKEN)
    commit(project)
    write(project)
    assert "verdict  unknown: the base has no valid plan: " in review.done()
    path = project / "environments.yaml"
    path.write_text("<<<<<<< HEAD\nlocal: {}\n", "utf-8")
    commit(project)
    path.write_text(ENVIRONMENTS, "utf-8")
    text = review.done()
    assert "unknown: the base has no valid plan: environments.yaml: the file is not YAML" in text


def test_a_removal_is_destructive_whatever_its_base_was(project, review):
    write(project, BROKEN)
    commit(project)
    for path in (project / "model_configs").glob(f"{MODEL}.*"):
        path.unlink()
    code, text, error = review()
    assert code == 1
    assert text.startswith(
        "tiny in `production`\n  verdict  removed: its stack stays and is billed"
    )
    assert "; the base has no valid plan: model_configs/tiny.yaml: unknown field" in text
    assert "[SW458]" in error
    review.done("--allow-destructive")


def test_an_environment_taken_away_is_a_removal_too(project, review):
    write(project, BROKEN)
    commit(project)
    write(project)
    kept = ENVIRONMENTS.partition("production:")[0]
    (project / "environments.yaml").write_text(kept, "utf-8")
    code, found = verdicts(review)
    assert (code, set(found.values())) == (1, {"removed"})


def rename(project: Path, name: str, *edits: tuple[str, str]) -> None:
    for path in (project / "model_configs").glob(f"{MODEL}.*"):
        path.rename(path.with_name(path.name.replace(MODEL, name)))
    write(project, *edits, name=name)


def test_a_renamed_model_is_one_entry(project, review):
    rename(project, "small", LARGER)
    for names in ((), ("small",), (MODEL,)):
        code, text, error = review(*names)
        assert code == 1
        assert text.startswith("small in `production`\n  verdict        renamed: tiny -> small, ")
        assert text.count("verdict") == 1
        assert "endpoint.instances: ml.g4dn.xlarge -> ml.g4dn.2xlarge" in text
        assert "small in `production`: renamed, tiny -> small, destroy and create" in error
    review.done("--allow-destructive")


def test_another_model_in_the_place_of_one_is_no_rename(project, review):
    edits = [("gpt2", "t5"), ("124439808", "60506624"), ("sm75", "sm86"), LARGER]
    edits += [("max_batch_size: 8", "max_batch_size: 4"), ("samples/tiny", "samples/small")]
    rename(project, "small", *edits)
    code, found = verdicts(review)
    assert (code, found[MODEL, "production"]) == (1, "removed")
    assert "renamed" not in found.values()


def test_a_renamed_model_without_a_valid_base_is_destructive(project, review):
    write(project, BROKEN)
    commit(project)
    rename(project, "small")
    code, text, _ = review()
    assert code == 1
    assert (
        "renamed: tiny -> small, destroy and create (the endpoint's name changes); the base has"
        in text
    )
    assert "; the base has no valid plan: " in text


def test_large_files_of_the_base_take_no_room(project):
    large, source = project / "samples" / "tiny" / "model.bin", project / "containers" / "lmi"
    for path in (large, source / "handler" / "table.bin"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1" * 11_000_000)
    (project / "link.bin").symlink_to("/dev/null")
    commit(project)
    large.unlink()
    now = Project(project)
    with project_at(now, "HEAD") as base:
        there = (base.root / large.relative_to(project)).stat()
        assert (there.st_size, there.st_blocks) == (11_000_000, 0)
        assert base.image_digest("lmi") == now.image_digest("lmi")
        assert (base.root / "link.bin").readlink() == Path("/dev/null")
    with project_at(now, "HEAD", is_run=True) as base:
        assert (base.root / large.relative_to(project)).read_bytes()[-1:] == b"1"


@pytest.mark.usefixtures("project")
def test_wrong_options_and_names_say_what_is_right(slipway_command):
    for options, told in {
        (): "takes either `--base REF` or `--live`",
        ("--base", "HEAD", "--live"): "takes either `--base REF` or `--live`",
        ("--live",): "with `--live` needs `--env`",
        ("--base", "HEAD", "--json", "--markdown"): "prints either Markdown or JSON",
        ("--base", "nowhere"): "git has no commit nowhere [SW417]",
        ("tinny", "--base", "HEAD"): "no model config matches 'tinny', before or after the change",
    }.items():
        code, printed, error = slipway_command("review", *options)
        assert (code, told in printed + error) == (1, True), error


def test_a_base_older_than_the_project_makes_every_model_new(project, review):
    root = project.parent
    git(root, "rm", "-r", "--cached", "--quiet", ".")
    git(root, "commit", "--message=no project yet")
    code, found = verdicts(review)
    assert (code, list(found.values())) == (0, ["new", "new"])


def test_a_model_without_a_plan_is_not_called_unchanged(project, review):
    (project / "model_configs" / f"{MODEL}.yaml").write_bytes(b"\xa6\xff")
    for options in ((), ("--markdown",)):
        code, text, error = review(*options)
        assert (code, "No model's" in text) == (1, False)
        assert "is not UTF-8 text" in error


def test_git_s_own_reason_is_told(project, review):
    root = project.parent
    # As in a clone without the program of its large files.
    (project / ".gitattributes").write_text("*.bin filter=large\n", "utf-8")
    (project / "some.bin").write_text("some", "utf-8")
    commit(root)
    git(root, "config", "filter.large.smudge", "false")
    git(root, "config", "filter.large.required", "true")
    error = review.refused()
    assert "git does not give the files of " in error
    assert "smudge filter large failed [SW417]" in error
    (root / ".git").rename(root / "away")
    assert "git reads no commit HEAD here: fatal: not a git repo" in review.refused()


def test_the_remedy_of_a_shallow_clone_brings_the_base(project, review, tmp_path, monkeypatch):
    git(tmp_path, "checkout", "-b", "change")
    write(project, LARGER)
    commit(tmp_path)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--depth=1", "--branch=change", tmp_path.as_uri(), str(clone))
    monkeypatch.chdir(clone / project.name)
    error = review.refused("--base", "origin/main")
    remedy = error.split("; `git ")[1].split("`")[0]
    git(clone, *shlex.split(remedy))
    text = review.done("--base", "origin/main")
    assert text.startswith("tiny in `production`\n  verdict    new fleet")


def test_markdown_keeps_asterisks_and_is_no_longer_than_github_takes():
    reach = (Reach(is_wider=True, text=r"s3:* on arn:aws:s3:::a/*, if x is a|<b>\c/*"),)
    found = ChangeReview("main", (ModelReview("m", "e", "ok", "why", reach=reach),), ())
    shown = r"| widened | s3:\* on arn:aws:s3:::a/\*, if x is a\|&lt;b>\\c/\* |"
    assert shown in as_markdown(found, {})
    models = tuple(
        ModelReview(f"m{n}", "e", "ok", "why", warnings=("w" * 500,)) for n in range(200)
    )
    text = as_markdown(ChangeReview("main", models, ()), {"e": "+a\n"})
    assert len(text) < 65_536
    # Whole parts alone: the table of every model, and what is behind the first ones.
    assert text.count("| **ok**: why |") == 200
    kept = text.count("| warning | ")
    assert text.endswith(
        f"\n\n{201 - kept} more parts are too long for a comment: see `slipway review`."
    )


def test_a_guest_that_loses_its_host_is_told(project, review):
    folder = project / "model_configs"
    (folder / f"{MODEL}.yaml").write_text(host_text(MODEL), "utf-8")
    (folder / f"{OTHER}.yaml").write_text(guest_text(OTHER, host=MODEL), "utf-8")
    commit(project)
    review.done()
    (folder / f"{MODEL}.yaml").unlink()
    code, text, error = review("--allow-destructive")
    assert code == 1
    assert "tiny in `production`\n  verdict  removed" in text
    assert "other.yaml" in error
    assert "there is no model `tiny` whose endpoint could be shared" in error


@pytest.mark.parametrize(
    ("app", "told"),
    [
        (
            "raise SystemExit('no app today')",
            "the project's app.py wrote no templates: no app today",
        ),
        ("", "the base's app.py wrote no tiny.template.json to $CDK_OUTDIR"),
        (None, "the project's app.py is missing, which writes the templates"),
    ],
)
def test_a_review_is_there_without_its_templates(project, review, app, told):
    path = project / "app.py"
    path.touch()
    commit(project)
    write(project, LARGER)
    path.unlink()
    if app is not None:
        path.write_text(app, "utf-8")
    code, text, error = review("--templates")
    assert (code, f"{told} [SW459]" in error) == (1, True), error
    assert text.startswith("tiny in `production`\n  verdict    new fleet")


def test_a_plan_is_followed_by_what_a_deploy_would_do(project, slipway_command):
    plan = slipway_command.of("plan", MODEL)
    assert plan.done("--against", "main").endswith("\n\ndeploy  no change\n")
    write(project, LARGER)
    assert plan.done("--against", "main") == (
        f"{plan.done()}\n"
        "deploy     new fleet: 2 x ml.g4dn.2xlarge start beside the old fleet, within minutes; "
        "quota of 2\n"
        "new fleet  endpoint.instances: ml.g4dn.xlarge -> ml.g4dn.2xlarge (nothing scales "
        "meanwhile)\n"
    )
    found = plan.document("--against", "HEAD")["consequences"]
    assert found["verdict"] == "new fleet"
    assert [(each["setting"], each["consequence"]) for each in found["effects"]] == [
        ("endpoint.instances", "new fleet")
    ]
    assert "consequences" not in plan.document()
    assert "git has no commit nowhere [SW417]" in plan.refused("--against", "nowhere")
    error = plan.refused("--against", "empty")
    assert f"empty has no plan of {MODEL} in `local`: " in error
    assert "[SW456]" in error
    assert "Name a commit that deploys the model." in error
