"""Tells the user of the CDK CLI that the shell does not point at the running embedded AWS.

The CDK CLI would only say that there are no credentials, or use the credentials of a real account.
Nothing in the templates depends on this.
"""

from collections.abc import Mapping
from pathlib import Path

from slipway.config.names import LOCAL
from slipway.embedded_aws import control


def unset_variables_hint(root: Path, environment: str, variables: Mapping[str, str]) -> str | None:
    """Returns a sentence with the remedy; None if none runs, or if the shell points at it."""
    state = control.running(root) if environment == LOCAL else None
    if state is None:
        return None
    own = state.connection.variables()
    points = variables.get("AWS_ENDPOINT_URL", "").rstrip("/") == state.url
    # Each start makes another secret. The keys of a user or a role of the account are others.
    is_stale = variables.get("AWS_ACCESS_KEY_ID") == own["AWS_ACCESS_KEY_ID"] and (
        variables.get("AWS_SECRET_ACCESS_KEY") != own["AWS_SECRET_ACCESS_KEY"]
    )
    if points and not is_stale:
        return None
    return (
        f"The embedded AWS runs at {state.url}, and this shell does not point at it, so `cdk "
        'deploy` cannot reach it. Run: eval "$(slipway local env)"'
    )
