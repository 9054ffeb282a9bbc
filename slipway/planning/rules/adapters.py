"""The rules about a LoRA adapter: its base has all settings but the artifact."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem


def adapter_has_own_artifact(deployment: Deployment) -> Iterator[Problem]:
    """Refuses artifacts that are no plain files, and those that the base's role cannot read."""
    artifacts = deployment.config.artifacts
    for name, reason in (
        ("release", "an adapter is no compiled model"),
        ("compile", "nothing compiles an adapter"),
        ("accept_eula", "an inference component has no such setting"),
        ("isolated", f"the role of `{deployment.config.adapter_of}` reads the adapter"),
    ):
        if getattr(artifacts, name):
            message = f"`{name}` is not for adapters: {reason}"
            remedy = f"Remove `{name}`." if name != "release" else "Name the files as `weights`."
            yield problem(Code.ADAPTER_SETTING, message, remedy, ("artifacts", name))
