"""The page about CI: its files are pinned and least privileged, and their commands exist."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.project import Project
from slipway.publishing.publish import planned_job
from slipway.rights.pipeline import least_policy
from tests.support.page_commands import check_command
from tests.support.pages import ROOT, Block, blocks
from tests.support.projects import config_text, write_files, write_project
from tests.support.repositories import commit, make_repository
from tests.support.starts import count_start

PAGE = ROOT / "docs" / "ci.md"
BLOCKS = list(blocks(PAGE))
# PyYAML reads YAML 1.1, in which the key `on` of a workflow is True.
ON = True


def files(label: str) -> list[Block]:
    return [block for block in BLOCKS if block.labels == (label,)]


def jobs(block: Block) -> Iterator[tuple[str, dict[str, Any]]]:
    content = yaml.safe_load(block.text)
    if block.labels == ("workflow",):
        yield from content["jobs"].items()
    elif block.labels == ("action",):
        yield content["name"], content["runs"]
    else:
        no_jobs = ("default", "stages", "variables")
        yield from ((name, job) for name, job in content.items() if name not in no_jobs)


def scripts(block: Block) -> Iterator[str]:
    content = yaml.safe_load(block.text)
    for _, job in jobs(block):
        yield from (step["run"] for step in job.get("steps", ()) if "run" in step)
        yield from job.get("script", ())
    yield from content.get("default", {}).get("before_script", ())


def programs(script: str) -> Iterator[str]:
    """The commands of a script, without what their output is sent to."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        command = list[str]()
        for word in [*words, ";"]:
            if set(word) <= set("|&;<>(){}"):
                if command:
                    yield shlex.join(command)
                command = []
            else:
                command.append(word)


ALL = [*files("workflow"), *files("action"), *files("gitlab")]


def commands_of(*names: str) -> list[str]:
    found = [line for block in ALL for script in scripts(block) for line in programs(script)]
    return [line for line in found if line.split()[0] in names]


def test_the_page_has_every_file() -> None:
    assert [len(files(label)) for label in ("workflow", "action", "gitlab")] == [2, 1, 1]


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.place)
def test_every_script_is_one(block: Block) -> None:
    found = list(scripts(block))
    assert found
    for script in found:
        parsed = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert parsed.returncode == 0, parsed.stderr


def test_every_command_and_its_options_exist() -> None:
    found = commands_of("cdk", "make", "slipway")
    used = {line.split()[1] for line in found if line.startswith("slipway ")}
    assert used == {"plan", "preflight", "publish", "review", "schema", "status", "validate"}
    for line in found:
        check_command(line)


@pytest.mark.cdk
@pytest.mark.size("all")
def test_every_option_of_the_cdk_cli_exists() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200"}
    cdk = ROOT / "node_modules" / ".bin" / "cdk"
    asked = {}
    for command in ("deploy", "diff", "synth"):
        count_start("cdk")
        asked[command] = subprocess.Popen(
            [cdk, command, "--help"], env=environment, stdout=subprocess.PIPE, text=True
        )
    for command, process in asked.items():
        shown, _ = process.communicate()
        assert process.returncode == 0
        lines = [line for line in commands_of("cdk") if line.split()[1] == command]
        assert lines
        for line in lines:
            for word in shlex.split(line):
                if word.startswith("--"):
                    option = word.partition("=")[0]
                    assert re.search(rf"{option}\b", shown), line


@pytest.mark.parametrize("block", files("workflow"), ids=lambda block: block.place)
def test_a_workflow_has_the_least_rights(block: Block) -> None:
    content = yaml.safe_load(block.text)
    assert content["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in content[ON]
    for name, job in jobs(block):
        assert job["timeout-minutes"] > 0, name
        uses_aws = any("configure-aws-credentials" in step.get("uses", "") for step in job["steps"])
        assert (job.get("permissions", {}).get("id-token") == "write") == uses_aws, name
        if name in ("deploy", "publish"):
            assert job["environment"] == "production"
            assert job["concurrency"]["cancel-in-progress"] is False


@pytest.mark.parametrize(
    "block", [*files("workflow"), *files("action")], ids=lambda block: block.place
)
def test_actions_are_pinned_and_inputs_are_no_script(block: Block) -> None:
    uses = re.findall(r"uses: (\S+)(.*)", block.text)
    assert uses
    for name, comment in uses:
        if not name.startswith("./"):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name), name
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), name
    # An expression in a script is text of the script, which somebody else may have written.
    assert [script for script in scripts(block) if "${{" in script] == []


def test_the_list_has_the_models_whose_config_or_lock_changed(tmp_path: Path) -> None:
    (models, _) = files("workflow")
    (step,) = (step for step in dict(jobs(models))["changed"]["steps"] if step.get("id") == "list")

    make_repository(tmp_path)
    configs = tmp_path / "model_configs"
    write_files(configs, dict.fromkeys(("gone.yaml", "a.yaml", "same.yaml"), "x\n"))
    base = commit(tmp_path)
    (configs / "gone.yaml").unlink()
    changed = ("a.yaml", "a.lock.json", "b-2.lock.json", "schema.json", "../docs/c.yaml")
    write_files(configs, dict.fromkeys(changed, "y\n"))
    commit(tmp_path)
    output = tmp_path / "output"
    subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={**os.environ, "BASE": base, "GITHUB_OUTPUT": str(output)},
        check=True,
    )
    key, _, value = output.read_text("utf-8").strip().partition("=")
    assert key == "models"
    assert json.loads(value) == ["a", "b-2"]


def write_reviewed_project(root: Path) -> str:
    """Makes a repository whose last commit changes an alarm; returns the commit before it."""
    root.mkdir()
    make_repository(root)
    write_project(root, {"tiny": config_text("tiny")}, published=["tiny"])
    (root / "app.py").write_text((ROOT / "app.py").read_text("utf-8"), "utf-8")
    base = commit(root)
    other = config_text("tiny", ("milliseconds: 600", "milliseconds: 700"))
    (root / "model_configs" / "tiny.yaml").write_text(other, "utf-8")
    commit(root)
    return base


@pytest.mark.size("all")
def test_the_review_is_one_comment_that_each_push_updates(tmp_path: Path) -> None:
    """The job's own commands, on a repository of this test; `gh` only notes what it is asked."""
    (models, _) = files("workflow")
    review, comment = (step for step in dict(jobs(models))["review"]["steps"] if "run" in step)
    project, tools, asked = tmp_path / "project", tmp_path / "bin", tmp_path / "asked"
    base, known = write_reviewed_project(project), tmp_path / "known"
    tools.mkdir()
    lists = f'[ "$2" = --paginate ] && [ -e {known} ] && cat {known}'
    (tools / "gh").write_text(f'#!/bin/sh\necho "$@" >> {asked}\n{lists}\ntrue\n')
    (tools / "gh").chmod(0o755)
    programs = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    places = {"COMMENTS": "repos/o/r/issues/1/comments", "COMMENT": "repos/o/r/issues/comments"}
    assert places.keys() < comment["env"].keys()

    def run(step: dict[str, Any]) -> None:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=project,
            env={**os.environ, "PATH": programs, "PYTHONPATH": str(ROOT), "BASE": base, **places},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    run(review)
    text = (project / "review.md").read_text("utf-8")
    assert text.startswith("<!-- slipway review -->\n")
    assert "| `tiny` | production | **in place**: the fleet stays |" in text
    assert '+    "Threshold": 700000,' in text
    run(comment)
    known.write_text("7\n", "utf-8")
    run(comment)
    written = [line for line in asked.read_text("utf-8").splitlines() if "--method" in line]
    assert written == [
        "api --method POST repos/o/r/issues/1/comments --field body=@review.md",
        "api --method PATCH repos/o/r/issues/comments/7 --field body=@review.md",
    ]


def test_the_hooks_refuse_a_config_that_is_wrong(tmp_path: Path) -> None:
    (block,) = files("pre-commit")
    project = tmp_path / "project"
    write_reviewed_project(project)
    (repository,) = yaml.safe_load(block.text)["repos"]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(hook: dict[str, Any]) -> int:
        command = shlex.split(hook["entry"])
        assert hook["pass_filenames"] is False
        assert re.search(hook["files"], "model_configs/tiny.yaml")
        return subprocess.run(
            command, cwd=project, env={**os.environ, "PATH": programs}, capture_output=True
        ).returncode

    validates, schema = repository["hooks"]
    assert run(validates) == 0
    assert run(schema) == 1  # the project has no schema.json
    (project / "model_configs" / "tiny.yaml").write_text("name: tiny\n", "utf-8")
    assert run(validates) == 1


def test_every_statement_of_the_roles_is_one_of_the_policy() -> None:
    table = re.findall(r"^\| (reads|publishes|deploys) \| (.*) \|$", PAGE.read_text("utf-8"), re.M)
    assert [role for role, _ in table] == ["reads", "publishes", "deploys"]
    named = {name for _, cell in table for name in re.findall(r"`([A-Z]\w+)`", cell)}
    project = Project(ROOT)
    environment = project.environment("ci")
    plan = project.plan("gpt2-autocomplete", environment, allow_unpublished=True)
    compiling, weights = planned_job(project, "gpt2-autocomplete", environment)
    policy = least_policy(plan, environment, [(compiling, weights)])
    # Jobs of this page do not invoke the endpoint.
    assert named == {statement["Sid"] for statement in policy["Statement"]} - {"Invoke"}
