"""Access to an environment's account: boto3 clients and the environment of child processes.

For `local` that is the embedded AWS and nothing else, whatever credentials the shell has; for any
other environment the shell's credentials, once they have been seen to be of the right account.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from embedded_aws import control
from embedded_aws.errors import LocalAwsError
from slipway.config.environments import Environment
from slipway.errors import UserError

# botocore's session variables: (name in the config file, environment variable, default, type).
_WITHOUT_USER_FILES: dict[str, Any] = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


class Access:
    """One account and region.

    Args:
        region: the environment's region.
        variables: what to set (or, where None, unset) in the environment of clients and processes.
    """

    def __init__(self, region: str, variables: Mapping[str, str | None]) -> None:
        self._region = region
        self._variables = variables
        # Where variables are given, they alone count: no profile and no files of the user's.
        own = _WITHOUT_USER_FILES if variables else None
        self._session = boto3.Session(
            aws_access_key_id=variables.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=variables.get("AWS_SECRET_ACCESS_KEY"),
            region_name=region,
            botocore_session=botocore.session.Session(session_vars=own),
        )

    def client(self, service: str, config: Config | None = None) -> Any:
        """Returns the boto3 client of a service (botocore's name)."""
        # boto3's stubs know clients by literal names only; this one is a variable.
        make_client: Any = self._session.client
        url = self._variables.get("AWS_ENDPOINT_URL")
        return make_client(service, endpoint_url=url, config=config)

    def process_environment(self) -> dict[str, str]:
        """Returns the environment for a child process that talks to this account."""
        merged: dict[str, str | None] = {**os.environ, "AWS_REGION": self._region}
        merged.update(self._variables)
        return {name: value for name, value in merged.items() if value is not None}


@contextlib.contextmanager
def account_errors() -> Iterator[None]:
    """Reports a call that the account denied, or that did not get through, as the user's."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise UserError.of(
            f"the account could not be looked into: {error}",
            "Use credentials that may make this call, then run the command again.",
        ) from None


def open_access(environment: Environment, root: Path) -> Access:
    """Opens access to an environment.

    Args:
        environment: which.
        root: the project; its embedded AWS is `local`.

    Raises:
        UserError: the embedded AWS is not running, there are no credentials, or they are another
            account's.
    """
    if environment.is_local:
        return Access(environment.region, local_variables(root, environment.region))
    access = Access(environment.region, {})
    try:
        account = access.client("sts").get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        raise UserError.of(
            f"no usable AWS credentials for environment `{environment.name}`: {error}",
            f"Log in to account {environment.account}, for example with `aws sso login`.",
        ) from None
    if account != environment.account:
        raise UserError.of(
            f"the credentials are of account {account}; environment `{environment.name}` is "
            f"account {environment.account}",
            "Log in to that account, or choose another environment with `--env`.",
        )
    return access


def local_variables(root: Path, region: str) -> dict[str, str | None]:
    """Returns what points a process at the project's embedded AWS; None means unset.

    Raises:
        UserError: it is not running.
    """
    try:
        status = control.status(root)
    except LocalAwsError as error:
        raise UserError.of(str(error), "Stop it with `slipway local stop`.") from None
    if status is None:
        raise UserError.of(
            "the embedded AWS is not running", "Start it with `slipway local start`."
        )
    return control.environment(status.state, region=region)
