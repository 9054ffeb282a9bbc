"""A scratch copy of the project, its own embedded AWS, and the commands a user types."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import boto3

from demo import copy_project
from slipway.embedded_aws import control
from slipway.embedded_aws.identity import ACCESS_KEY_ID
from slipway.project import Project
from tests.support import prepared_accounts
from tests.support.assemblies import deploy_command, destroy_command
from tests.support.processes import kill_tree
from tests.support.starts import count_start

MODEL = "gpt2-autocomplete"
# An assembly of the foundation and these models, which the session's account comes with.
SHIPPED = "cdk.out.shipped"
SHIPPED_MODELS = (MODEL, "bert-qa-gpu", "bert-qa-throughput", "bert-qa-latency", "bert-qa-inf2")
# Where the CDK CLI writes what it synthesises, unless it is told another folder.
LATEST = "cdk.out"


class Workbench:
    """A copy of the project in an empty folder, and an embedded AWS of its own.

    Use as a context manager: its end stops the embedded AWS. With `containers`, endpoints run in
    their images.
    """

    def __init__(self, project: Path, *, containers: bool = False) -> None:
        self.project = project
        self._containers = containers
        copy_project(project)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        control.stop(self.project)

    def start(self) -> None:
        """Starts the embedded AWS, with an empty account, and points commands at it."""
        count_start("embedded-aws")
        self.state = control.start(self.project, port=0, containers=self._containers)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        merged = {**os.environ, "PATH": path, **control.environment(self.state)}
        self.environment = {name: value for name, value in merged.items() if value is not None}

    def bootstrap(self) -> None:
        prepared_accounts.bootstrap(self.client)

    def deploy_foundation(self) -> None:
        """Leaves what `cdk deploy foundation` does."""
        prepared_accounts.deploy_foundation(self.client, Project(self.project).environment("local"))

    def popen(self, *command: str) -> subprocess.Popen[str]:
        """Starts a command; in a session of its own, to be killed with all that it starts."""
        count_start(Path(command[0]).name)
        return subprocess.Popen(
            command,
            cwd=self.project,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end; its standard error is part of its output."""
        process = self.popen(*command)
        try:
            output, _ = process.communicate(timeout=240)
        except BaseException:
            kill_tree(process)  # too slow, or the tests are being stopped
            raise
        return subprocess.CompletedProcess(command, process.returncode, output)

    def must(self, *command: str) -> str:
        result = self.run(*command)
        assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}"
        return result.stdout

    def fails(self, *command: str) -> str:
        result = self.run(*command)
        assert result.returncode == 1, f"{' '.join(command)}\n{result.stdout}"
        assert "Traceback" not in result.stdout
        return result.stdout

    def says_no(self, *command: str) -> str:
        result = self.run(*command)
        assert result.returncode == 3, f"{' '.join(command)}\n{result.stdout}"
        return result.stdout

    def aws(self, *command: str) -> Any:
        """Runs the AWS CLI and reads its JSON."""
        return json.loads(self.must("aws", *command, "--output", "json"))

    def client(self, service: str) -> Any:
        make_client: Any = boto3.client
        return make_client(
            service,
            endpoint_url=self.state.url,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY_ID,
            aws_secret_access_key=self.state.secret_access_key,
        )

    def ask(self, endpoint: str, body: Any) -> Any:
        """Sends JSON to an endpoint; returns the answer's JSON."""
        answer = self.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=endpoint, ContentType="application/json", Body=json.dumps(body)
        )
        return json.load(answer["Body"])

    def stack_status(self, name: str) -> str | None:
        stacks = self.client("cloudformation").describe_stacks()["Stacks"]
        return next((stack["StackStatus"] for stack in stacks if stack["StackName"] == name), None)

    def serving_processes(self) -> list[int]:
        """Finds this account's containers: programs whose model directory is in the project.

        The processes that a program starts are among them.
        """
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environ = (folder / "environ").read_bytes().split(b"\0")
                command = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it ended, or it is somebody else's
            mark = f"SM_MODEL_DIR={self.project}".encode()
            # Not its supervisor, which has the program's command line behind its own.
            program = command[1:2] == [b"-m"] and command[2].startswith(b"containers.")
            if program and any(item.startswith(mark) for item in environ):
                found.append(int(folder.name))
        return found

    def config(self, name: str) -> Path:
        return self.project / "model_configs" / f"{name}.yaml"

    def add_model(self, name: str) -> None:
        """Adds a second model: the sample's config and lock under another name."""
        text = self.config(MODEL).read_text("utf-8")
        self.config(name).write_text(text.replace(f"name: {MODEL}", f"name: {name}"), "utf-8")
        locks = self.project / "model_configs"
        shutil.copy2(locks / f"{MODEL}.lock.json", locks / f"{name}.lock.json")

    def deploy(self, *names: str, context: str | None = None) -> str:
        """Synthesises models and deploys them, with what they depend on."""
        models = context or ",".join(names)
        return self.must(
            "cdk", "deploy", *names, "-c", f"models={models}", "--require-approval", "never"
        )

    def destroy(self, name: str) -> str:
        return self.must("cdk", "destroy", name, "--force", "-c", f"models={name}")

    def deploy_from(self, assembly: Path | str, *names: str) -> str:
        return self.must(*deploy_command(assembly, *names))

    def destroy_from(self, assembly: Path | str, *names: str) -> str:
        return self.must(*destroy_command(assembly, *names))
