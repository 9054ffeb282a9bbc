"""The account and the projects that the commands run against.

One embedded AWS serves them all. Every size has its own project folder and deploys its own model.
No file is therefore moved between two timings, and each deploy updates its own stack. `slipway
validate` and `slipway plan` need no account. The `cdk` commands find it through variables, as after
`eval "$(slipway local env)"`.
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.control_plane.report import Cell
from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing, interrupts_held, run_timed
from benchmarks.machine import program_path
from demo import copy_project
from slipway.access import open_access
from slipway.config.names import CONFIG_DIRECTORY
from slipway.embedded_aws import control
from slipway.embedded_aws.control import LocalState
from slipway.project import Project

SAMPLE = "gpt2-autocomplete"
_ENVIRONMENT = "local"
_THRESHOLD = re.compile(r"^(  model_latency_p99_milliseconds: )(\d+)$", re.M)
_LEFT_OUT = ("CDK_", "JSII_", "NODE_", "PYTHON", "SLIPWAY_")
_FIRST_THRESHOLD_MILLISECONDS = 600


def command_variables(state: LocalState, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the user's environment, pointed at the embedded AWS.

    Variables that change how Python, Node, the CDK and Slipway work are left out:
    `PYTHONDONTWRITEBYTECODE`, for one, makes every command compile its modules again.
    """
    merged = {
        **{name: value for name, value in environ.items() if not name.startswith(_LEFT_OUT)},
        "PATH": program_path(),
        **control.environment(state, environ=environ),
    }
    return {name: value for name, value in merged.items() if value is not None}


class SizedProject:
    """A copy of the project with a number of valid configs, one of which is deployed."""

    def __init__(self, folder: Path, config_count: int) -> None:
        self.folder = folder
        self.config_count = config_count
        self.model = f"changed-among-{config_count}"
        self.threshold_milliseconds = _FIRST_THRESHOLD_MILLISECONDS
        self._config = folder / CONFIG_DIRECTORY / f"{self.model}.yaml"

    @property
    def endpoint_name(self) -> str:
        return f"{self.model}-{_ENVIRONMENT}"

    def write_configs(self) -> None:
        configs = self.folder / CONFIG_DIRECTORY
        text = (configs / f"{SAMPLE}.yaml").read_text("utf-8")
        lock = (configs / f"{SAMPLE}.lock.json").read_text("utf-8")
        shutil.rmtree(configs)
        configs.mkdir()
        others = (f"other-{number:04}" for number in range(1, self.config_count))
        for name in (self.model, *others):
            copy = _replace_once(re.compile(rf"^name: {SAMPLE}$", re.M), f"name: {name}", text)
            (configs / f"{name}.yaml").write_text(copy, "utf-8")
            (configs / f"{name}.lock.json").write_text(lock, "utf-8")
        self._write_threshold()

    def change(self) -> None:
        self.threshold_milliseconds += 1
        self._write_threshold()

    def _write_threshold(self) -> None:
        text = self._config.read_text("utf-8")
        changed = _replace_once(_THRESHOLD, rf"\g<1>{self.threshold_milliseconds}", text)
        self._config.write_text(changed, "utf-8")


class Workspace:
    """An embedded AWS with the foundation and the published sample, and a project per size.

    Use it as a context: leaving stops the embedded AWS with every container.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._account = folder / "account"
        self._folder = folder
        self._say = say
        self._projects: dict[int, SizedProject] = {}
        self._variables: dict[str, str] = {}
        self._cloudwatch: Any = None

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *_: object) -> None:
        control.stop(self._account)

    def prepare(self, sizes: Sequence[int]) -> None:
        """Sets everything up, and runs the timed commands once beforehand."""
        self._start_account()
        self._must(self._account, "cdk", "bootstrap")
        self._must(self._account, "cdk", "deploy", "foundation", "--require-approval", "never")
        self._must(self._account, "slipway", "publish", SAMPLE)
        for size in sizes:
            self._add_project(size)

    def run(self, cell: Cell) -> Timing:
        project = self._projects[cell.config_count]
        line = cell.command.line(project.model)
        timing, output = run_timed(line, project.folder, self._variables)
        self._check(line, project, output)
        if line[:2] == ("cdk", "deploy"):
            project.change()
        return timing

    def _start_account(self) -> None:
        self._say("starting an embedded AWS")
        self._account.mkdir()
        copy_project(self._account)
        # A starting embedded AWS cannot be stopped.
        with interrupts_held():
            state = control.start(self._account, port=0)
        self._variables = command_variables(state, os.environ)
        environment = Project(self._account).environment(_ENVIRONMENT)
        self._cloudwatch = open_access(environment, self._account).client("cloudwatch")

    def _add_project(self, size: int) -> None:
        folder = self._folder / f"configs-{size}"
        folder.mkdir()
        copy_project(folder)
        project = SizedProject(folder, size)
        project.write_configs()
        self._projects[size] = project
        deploy = ("cdk", "deploy", project.model, "--require-approval", "never")
        # The first command reads every config, so that bytecode is compiled and every output file
        # exists.
        for line in (("slipway", "validate"), deploy, (*deploy, "-c", f"models={project.model}")):
            output = self._must(folder, *line)
            self._check(line, project, output)
            if line[:2] == ("cdk", "deploy"):
                project.change()

    def _must(self, folder: Path, *command: str) -> str:
        self._say(f"{folder.name}: {shlex.join(command)}")
        _, output = run_timed(command, folder, self._variables)
        return output

    def _check(self, line: Sequence[str], project: SizedProject, output: str) -> None:
        """Checks that a command did its work, since a quick failure would look like a good time."""
        threshold = project.threshold_milliseconds * 1000
        match line[:2]:
            case ("cdk", "deploy"):
                done = self._deployed_threshold(project) == threshold
            case ("cdk", "diff"):
                done = "[~] AWS::CloudWatch::Alarm" in output and str(threshold) in output
            case ("cdk", "synth"):
                done = "AWS::SageMaker::EndpointConfig" in output and str(threshold) in output
            case ("slipway", "plan"):
                done = project.endpoint_name in output
            case _:
                count = 1 if len(line) > 2 else project.config_count
                done = output.startswith(f"{count} model config")
        if not done:
            raise BenchmarkError(
                f"`{shlex.join(line)}` among {project.config_count} ended well, but did not do "
                f"what it was timed for\n{output}"
            )

    def _deployed_threshold(self, project: SizedProject) -> float | None:
        """Returns the alarm's present threshold in the account, in microseconds."""
        # Alarms are named after their stack, which is named as the endpoint.
        alarms = self._cloudwatch.describe_alarms(AlarmNamePrefix=f"{project.endpoint_name}-")
        return next(
            (
                alarm["Threshold"]
                for alarm in alarms["MetricAlarms"]
                if alarm.get("MetricName") == "ModelLatency"
            ),
            None,
        )


def _replace_once(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    replaced, count = pattern.subn(replacement, text)
    if count != 1:
        raise BenchmarkError(
            f"the config of {SAMPLE} has {count} lines like {pattern.pattern!r} instead of one"
        )
    return replaced
