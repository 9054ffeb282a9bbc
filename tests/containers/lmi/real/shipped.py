"""The LMI configs that ship, changed for a CPU as a user would, and what transformers answers."""

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass

import yaml

from slipway.embedded_aws.clients import LoopbackClients
from slipway.project import Project
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.sample import BUCKET, greedy
from tests.support.accounts import connection_to

ENVIRONMENT = "local"
DIGEST = "f5" * 32
# A small model in place of the one that the config names.
SMALL_MODEL = {
    "model": {"parameters": 1_000_000, "layers": 2},
    "artifacts": {"size_gb": 0.004},
}


def config_on_cpu(name, directory, *edits, model=SMALL_MODEL, **serving):
    """A shipped config with fields of `serving` that the environment `local` sees otherwise.

    Its text is as it is but for `edits`. It is planned first, in an empty directory, so that every
    rule has seen it.
    """
    configs = directory / "model_configs"
    configs.mkdir()
    shipped = (servers.ROOT / "model_configs" / f"{name}.yaml").read_text("utf-8")
    for old, new in edits:
        assert shipped.count(old) == 1, f"{old!r} is there {shipped.count(old)} times"
        shipped = shipped.replace(old, new)
    changes = {"environments": {ENVIRONMENT: {**model, "serving": serving}}}
    (configs / f"{name}.yaml").write_text(shipped + yaml.safe_dump(changes), "utf-8")
    environments = (servers.ROOT / "environments.yaml").read_bytes()
    (directory / "environments.yaml").write_bytes(environments)
    (directory / "containers").symlink_to(servers.ROOT / "containers")
    project = Project(directory)
    project.plan(name, project.environment(ENVIRONMENT), allow_unpublished=True)
    return project.config(name, ENVIRONMENT).config


@contextlib.contextmanager
def answering(home, new_directory, config, weights, *, aws_url, **declared):
    """Starts the server on what `slipway publish` sends for a config, and waits for it."""
    clients = LoopbackClients(connection_to(aws_url))
    servers.put_weights(clients.client("s3", "us-east-1"), weights, DIGEST)
    clients.close()
    files = servers.package_for(config, DIGEST)
    # One worker, as for the GPUs of these configs; on a CPU there is else one for each core.
    declared["JAVA_OPTS"] = "-XX:ActiveProcessorCount=1"
    with servers.ready(home, new_directory, files, aws_url=aws_url, **declared) as server:
        yield server


@dataclass(frozen=True)
class Served:
    """A server of the sample model, and what stands behind a text that the model has ended."""

    server: servers.DjlServing
    end: str = ""

    def completed(self, body):
        """The document of an answer in the server's own form."""
        answer = self.server.post(body)
        assert (answer.status, answer.content_type) == (200, "application/json"), answer
        return answer.document

    def generate(self, prompt, **parameters):
        return self.completed(greedy(prompt, **parameters))["generated_text"]

    def streamed(self, body):
        answer = self.server.post({**body, "stream": True})
        assert (answer.status, answer.content_type) == (200, "application/jsonlines")
        return _documents(answer.body)

    def while_another_is_answered(self, *bad):
        """Sends bad requests after the first token of a long answer; returns its lines."""
        long = greedy(BUCKET, max_new_tokens=110, ignore_eos_token=True)
        with self.server.streaming({**long, "stream": True}) as response:
            first = response.readline()
            for body in bad:
                assert self.server.post(body).status == 424
            return _documents(first + response.read())

    def refuses(self, bodies):
        """Checks the status and the reason of bad bodies, and that the worker goes on."""
        for body, status, reason in bodies:
            answer = self.server.post(body)
            assert answer.status == status, (body, answer.body)
            document = answer.document
            assert reason in (document.get("error") or document["message"]), body
        assert self.generate(BUCKET, max_new_tokens=2) == " name for"
        assert self.server.ping().status == 200
        assert self.server.log.count(servers.WORKER_STARTED) == 1


def _documents(lines):
    return [json.loads(line) for line in lines.splitlines() if line.strip()]


def reference(kind, directory, calls):
    """Makes a small model; returns its files, and what transformers generates, by the call's name.

    A call has the arguments of `small_models.texts`.
    """
    program = "tests.containers.lmi.real.small_models"
    checkpoint, texts = directory / "checkpoint", directory / "texts.json"
    finished = subprocess.run(
        [servers.PYTHON, "-m", program, kind, str(checkpoint), str(texts)],
        input=json.dumps(list(calls.values())),
        capture_output=True,
        text=True,
        check=False,
        cwd=servers.ROOT,
        env={**os.environ, "PYTHONPATH": str(servers.ROOT)},
    )
    assert finished.returncode == 0, finished.stderr
    weights = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    return weights, dict(zip(calls, json.loads(texts.read_text("utf-8")), strict=True))
