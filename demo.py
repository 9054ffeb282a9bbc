"""`make demo`: one model's whole life on the embedded AWS, with the commands a user would type.

Everything happens in a scratch copy of this project and on a port of its own. Neither the working
tree nor an embedded AWS that is already running is touched. Copy and server are removed afterwards.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import boto3

from slipway.embedded_aws import control

ROOT = Path(__file__).parent
MODEL = "gpt2-autocomplete"
ENDPOINT = f"{MODEL}-local"
PROMPTS = ("The Amazon Resource Name (ARN) of", "Specifies whether the", "The maximum number of")
# The files of a project. Slipway itself is installed.
PARTS = ("app.py", "cdk.json", "environments.yaml", "model_configs", "samples")
CDK = ("cdk", "--no-color")


class Demo:
    """The steps, in order; the first step that fails ends the demo with its output."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._environment = dict(os.environ)
        self._started = time.monotonic()

    def run(self) -> None:
        """Runs all steps."""
        self.title("An AWS on this machine")
        self.shell("slipway", "local", "start", "--port", "0")
        self.use_embedded_aws()
        self.shell(*CDK, "bootstrap", "--quiet", show=False)

        self.title("The model: published with s5cmd, deployed with the CDK CLI")
        self.shell(*CDK, "deploy", "foundation", "--require-approval", "never", show=False)
        self.shell("slipway", "publish", MODEL)
        self.deploy()

        self.title("It answers, through boto3")
        completions = [(prompt, self.invoke(prompt)) for prompt in PROMPTS]
        for prompt, completion in completions:
            print(f"  {prompt} ->{completion}")
        self.show_declared()

        self.title("A change: more instances at most, a stricter latency alarm")
        config = self._project / "model_configs" / f"{MODEL}.yaml"
        text = config.read_text("utf-8")
        changed = text.replace("max_instance_count: 4", "max_instance_count: 8").replace(
            "model_latency_p99_milliseconds: 600", "model_latency_p99_milliseconds: 400"
        )
        config.write_text(changed, "utf-8")
        # --ci: the diff is the result, so it goes to standard output.
        diff = self.shell(
            *CDK, "diff", MODEL, "-c", f"models={MODEL}", "--method=template", "--ci", show=False
        )
        self.deploy()

        self.title("Destroyed")
        self.shell(*CDK, "destroy", MODEL, "--force", "-c", f"models={MODEL}", show=False)
        leftovers = self.shell("slipway", "leftovers", MODEL, show=False)

        self.title(f"In short, after {time.monotonic() - self._started:.0f} s")
        prompt, completion = completions[0]
        print(f"the completion\n  {prompt} ->{completion}\n\nthe diff")
        for line in diff.splitlines():
            if line.startswith(("[~]", " ├", " └", "     ")):
                print(f"  {line}")
        print(f"\nthe account\n  {leftovers.strip()}")
        print("\na page to look at, while a model is deployed as above\n  slipway ui")

    def deploy(self) -> None:
        """Deploys the model with its present config."""
        self.shell(*CDK, "deploy", MODEL, "-c", f"models={MODEL}", "--require-approval", "never",
                   show=False)  # fmt: skip

    def use_embedded_aws(self) -> None:
        """Sets the variables that `eval "$(slipway local env)"` sets in a shell."""
        print('$ eval "$(slipway local env)"')
        variables = json.loads(self._capture(("slipway", "local", "env", "--json")))
        for name, value in variables.items():
            if value is None:
                self._environment.pop(name, None)
            else:
                self._environment[name] = value

    def invoke(self, prompt: str) -> str:
        """Asks the endpoint to complete a prompt."""
        response = self._client("sagemaker-runtime").invoke_endpoint(
            EndpointName=ENDPOINT,
            ContentType="application/json",
            Body=json.dumps({"inputs": prompt, "parameters": {"max_new_tokens": 12}}),
        )
        completion: str = json.load(response["Body"])[0]["generated_text"]
        return completion.removeprefix(prompt)

    def show_declared(self) -> None:
        """Prints the stack's resources, as the services describe them."""
        scaling = self._client("application-autoscaling")
        for target in scaling.describe_scalable_targets(ServiceNamespace="sagemaker")[
            "ScalableTargets"
        ]:
            print(f"\n  scaling   {target['MinCapacity']} to {target['MaxCapacity']} instances")
        for policy in scaling.describe_scaling_policies(ServiceNamespace="sagemaker")[
            "ScalingPolicies"
        ]:
            tracking = policy["TargetTrackingScalingPolicyConfiguration"]
            metric = tracking["PredefinedMetricSpecification"]["PredefinedMetricType"]
            print(f"  policy    {metric} held at {tracking['TargetValue']:g}")
        alarms = self._client("cloudwatch").describe_alarms(AlarmNamePrefix=f"{ENDPOINT}-")
        for alarm in alarms["MetricAlarms"]:
            print(f"  alarm     {alarm['AlarmDescription']} > {alarm['Threshold']:g}")

    def shell(self, *command: str, show: bool = True) -> str:
        """Runs a command and shows it as typed; returns its standard output."""
        print(f"$ {' '.join(command)}", flush=True)
        started = time.monotonic()
        output = self._capture(command)
        if show:
            print("".join(f"  {line}\n" for line in output.splitlines()), end="")
        else:
            print(f"  done in {time.monotonic() - started:.0f} s", flush=True)
        return output

    def title(self, text: str) -> None:
        """Prints a heading."""
        print(f"\n== {text}", flush=True)

    def _capture(self, command: tuple[str, ...]) -> str:
        result = subprocess.run(  # noqa: S603  # fixed arguments, no shell
            command, cwd=self._project, env=self._environment, text=True, capture_output=True,
            check=False,
        )  # fmt: skip
        if result.returncode:
            sys.stdout.write(result.stdout)
            sys.stderr.write(result.stderr)
            raise SystemExit(f"demo: `{' '.join(command)}` ended with {result.returncode}")
        return result.stdout

    def _client(self, service: str) -> Any:
        make_client: Any = boto3.client
        return make_client(
            service,
            endpoint_url=self._environment["AWS_ENDPOINT_URL"],
            region_name=self._environment["AWS_REGION"],
            aws_access_key_id=self._environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self._environment["AWS_SECRET_ACCESS_KEY"],
        )


def copy_project(destination: Path) -> None:
    """Copies the project into an empty folder: sources, configs and samples."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, destination / part, ignore=ignored)
        else:
            shutil.copy2(source, destination / part)


def main() -> None:
    """Makes the scratch copy, runs the demo, and cleans up whatever happens."""
    with tempfile.TemporaryDirectory(prefix="slipway-demo-") as folder:
        project = Path(folder)
        copy_project(project)
        try:
            Demo(project).run()
        finally:
            control.stop(project)


if __name__ == "__main__":
    main()
