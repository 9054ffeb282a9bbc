"""benchmarks/neuron.md: every command on it is one that its program takes."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.program import ROOT
from demo import copy_project
from slipway.benchmarking.design import load_design
from slipway.cli.main import main
from slipway.project import Project
from tests.support.page_commands import check_command

PAGE = (ROOT / "benchmarks" / "neuron.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S)
    for line in block.splitlines()
    if line
]
# Each config with its published instance and the rows of its batches.
MEASURED = {
    "bert-qa-latency": ("ml.inf1.6xlarge", 1),
    "measure-inf1-xlarge": ("ml.inf1.xlarge", 6),
    "measure-inf1-6xlarge": ("ml.inf1.6xlarge", 6),
    "measure-inf2-batch-8": ("ml.inf2.xlarge", 8),
    "measure-inf2-batch-1": ("ml.inf2.xlarge", 1),
}


def commands_of(*program):
    """The arguments of each of a program's commands, those of the program left out."""
    parts = [shlex.split(line) for line in COMMANDS]
    return [each[len(program) :] for each in parts if each[: len(program)] == list(program)]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the configs in which the page's own have been made, by its own commands."""
    root = tmp_path_factory.mktemp("project")
    copy_project(root)
    (root / "slipway").symlink_to(ROOT / "slipway")
    for line in COMMANDS:
        if line.startswith("sed "):
            subprocess.run(["/bin/sh", "-c", line], cwd=root, check=True, timeout=60)
    return root


def test_every_command_is_of_a_program_that_is_checked_here():
    checked = {"sed", "slipway", "cdk", "aws", "rm"}
    assert {shlex.split(line)[0] for line in COMMANDS} == checked
    # Nothing that looks like a command stands outside of what is checked.
    assert len(re.findall(r"^(?:slipway|cdk|aws|python|sed) ", PAGE, re.M)) + 1 == len(COMMANDS)


@pytest.mark.parametrize("line", COMMANDS)
def test_slipway_and_cdk_take_it(line):
    check_command(line)


def test_the_designs_are_valid_and_fit_the_configs(project):
    loads = [
        (model, load_design(project / design, project).design.factors)
        for model, _, env, _, design in commands_of("slipway", "bench")
        if env == "production"
    ]
    assert {model for model, _ in loads} == set(MEASURED)
    for model, factors in loads:
        # With the second load of a section each request has six sentences.
        config = (project / "model_configs" / f"{model}.yaml").read_text("utf-8")
        expected = re.search(r"expected_concurrency: (\d+)", config)
        most = int(expected[1]) if expected else 2
        assert most in {clients * factors.batch[0] for clients in factors.concurrency}


@pytest.mark.parametrize(("name", "published"), MEASURED.items())
def test_each_config_can_be_planned_on_the_published_instance(
    name, published, project, monkeypatch, capsys
):
    config = Project(project).config(name, "ci").config
    assert (list(config.endpoint.instances), config.serving.batch_size) == (
        [published[0]],
        published[1],
    )
    assert config.serving.sequence_length == 128
    if config.autoscaling:
        assert config.autoscaling.max_instance_count == 1
    monkeypatch.chdir(project)
    monkeypatch.setattr(
        sys, "argv", ["slipway", "plan", name, "--env", "ci", "--allow-unpublished"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0, capsys.readouterr()


@pytest.mark.parametrize("name", MEASURED)
def test_an_endpoint_is_published_deployed_loaded_destroyed_and_looked_for(name):
    own = [line for line in COMMANDS if name in shlex.split(line)]
    steps = [shlex.split(line)[:2] for line in own if not line.startswith(("sed", "slipway v"))]
    shown = [step for step in steps if step != ["slipway", "status"]]
    loads = [["slipway", "bench"]] * shown.count(["slipway", "bench"])
    assert loads
    assert shown == [
        ["slipway", "publish"],
        ["cdk", "deploy"],
        *loads,
        ["cdk", "destroy"],
        ["slipway", "leftovers"],
    ]


@pytest.mark.parametrize("arguments", commands_of("cdk"), ids=" ".join)
def test_cdk_is_told_of_stacks_that_there_are(arguments):
    verb, *_ = arguments
    context = [value for option, value in pairwise(arguments) if option == "-c"]
    stacks = [each for each in arguments[1:] if not each.startswith("-") and each not in context]
    assert context[-1] == "env=production"
    if verb == "bootstrap":
        assert stacks == []
    elif stacks[0] in ("foundation", "image-neuron"):
        assert context == ["env=production"]
    else:
        assert context == [f"models={stacks[0]}", "env=production"]
        assert stacks[0] in MEASURED
    assert ("--force" in arguments) == (verb == "destroy")


@pytest.mark.parametrize("arguments", commands_of("aws"), ids=lambda each: each[1])
def test_the_aws_cli_takes_it(arguments):
    program = shutil.which("aws", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    assert program is not None, "it is in requirements-dev.txt"
    # It reads the options, and calls nothing.
    done = subprocess.run(
        [program, *arguments, "--generate-cli-skeleton", "output"],
        env={**os.environ, "AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Datapoints" in json.loads(done.stdout)
