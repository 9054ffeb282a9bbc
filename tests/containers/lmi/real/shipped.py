"""The LMI configs that ship, changed for a CPU in the way a user would change them."""

import contextlib

import yaml

from slipway.embedded_aws.clients import LoopbackClients
from slipway.project import Project
from tests.containers.lmi.real import servers
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
