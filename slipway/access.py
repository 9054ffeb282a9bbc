"""Access to an environment's account: boto3 clients and the environment of child processes.

For `local` that is only the embedded AWS, whatever credentials the shell has. For any other
environment it is the shell's credentials, after a check that they belong to the right account.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigParseError,
    EndpointConnectionError,
    InvalidMaxRetryAttemptsError,
    InvalidRetryModeError,
    MissingDependencyException,
    NoCredentialsError,
    ProfileNotFound,
    RefreshWithMFAUnsupportedError,
)

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.embedded_aws import control
from slipway.embedded_aws.errors import LocalAwsError
from slipway.errors import Kind, Problem, UserError

# botocore's session variables: (name in the config file, environment variable, default, type).
_WITHOUT_USER_FILES: dict[str, Any] = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}

# What an SDK resolves credentials from. A child process gets those that boto3 resolved instead.
_CREDENTIAL_VARIABLES = frozenset(
    {
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CREDENTIAL_EXPIRATION",
        "AWS_DEFAULT_PROFILE",
        "AWS_PROFILE",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SECRET_KEY",
        "AWS_SECURITY_TOKEN",
        "AWS_SESSION_TOKEN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    }
)


_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")


class Access:
    """One account and region.

    `variables` are set in the environment of clients and processes; None unsets one. A `profile` of
    the user's files counts more than the shell's credentials.
    """

    def __init__(
        self, region: str, variables: Mapping[str, str | None], profile: str | None = None
    ) -> None:
        self._region = region
        self._variables = variables
        self._profile = profile
        # Where variables are given, they alone count: no profile and no files of the user's.
        own = _WITHOUT_USER_FILES if variables else None
        self._botocore_session = botocore.session.Session(session_vars=own)
        self._session = boto3.Session(
            aws_access_key_id=variables.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=variables.get("AWS_SECRET_ACCESS_KEY"),
            region_name=region,
            botocore_session=self._botocore_session,
            profile_name=profile,
        )

    def in_region(self, region: str) -> "Access":
        return Access(region, self._variables, self._profile)

    def client(self, service: str, config: Config | None = None) -> Any:
        """Returns a boto3 client; raises `UserError` for a setting that cannot be used."""
        # boto3's stubs know clients by literal names only; this one is a variable.
        make_client: Any = self._session.client
        url = self._variables.get("AWS_ENDPOINT_URL")
        try:
            return make_client(service, endpoint_url=url, config=config)
        except ValueError as error:
            # botocore checks URLs and numbers of the user's settings here, and not when it reads
            # them.
            raise UserError([_settings_problem(str(error))]) from None

    def credentials(self) -> ReadOnlyCredentials:
        """Returns the present credentials, renewed first if they end soon.

        Raises any exception if there are none, or they cannot be renewed: botocore's providers run
        the user's own programs and read files and the terminal.
        """
        found = self._session.get_credentials()
        if found is None:
            raise NoCredentialsError
        return found.get_frozen_credentials()

    def process_environment(self) -> dict[str, str]:
        """Returns the environment for a child process that talks to this account.

        It contains no credentials, and nothing by which an SDK would find some. The user's files
        are hidden for the same reason; the settings that boto3 read in them are set here.
        """
        merged: dict[str, str | None] = {
            **os.environ,
            "AWS_REGION": self._region,
            **self._file_settings(),
            **self._variables,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }
        return {
            name: value
            for name, value in merged.items()
            if value is not None and name not in _CREDENTIAL_VARIABLES
        }

    def _file_settings(self) -> dict[str, str]:
        """Returns settings of the user's files and of boto3's own variables as s5cmd reads them."""
        if self._variables:
            return {}
        read = self._botocore_session.get_config_variable
        settings = {}
        # The second is botocore's own fallback.
        if bundle := read("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE"):
            settings["AWS_CA_BUNDLE"] = str(bundle)
        for name in ("use_fips_endpoint", "use_dualstack_endpoint"):
            if read(name):
                settings[f"AWS_{name.upper()}"] = "true"
        # s5cmd reads no AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 or `endpoint_url`: boto3 would talk
        # to one S3, s5cmd to another.
        url = self.client("s3").meta.endpoint_url
        # boto3's stubs do not know this argument of botocore's.
        ignoring: Any = {"ignore_configured_endpoint_urls": True}
        usual = self.client("s3", Config(**ignoring)).meta.endpoint_url
        if url != usual:
            settings["S3_ENDPOINT_URL"] = url
        return settings


def credentials_problem(what: str, error: Exception, log_in: str) -> Problem:
    reason = str(error).strip() or type(error).__name__
    remedy = log_in
    if isinstance(error, MissingDependencyException):
        remedy = 'Run `pip install "botocore[crt]"`, or log in with another kind of profile.'
    elif isinstance(error, RefreshWithMFAUnsupportedError):
        remedy = (
            "Run the command again with a new code: what has arrived is not sent twice. "
            "`duration_seconds` in the profile makes such credentials last longer."
        )
    elif isinstance(error, EOFError):
        reason = "the profile asks for an MFA code, and there is no terminal to type it at"
        remedy = "Run the command in a terminal, or use a role that needs no MFA."
    return Problem(Code.NO_CREDENTIALS, Kind.STATE, f"{what}: {reason}", remedy)


def _settings_problem(message: str, remedy: str | None = None) -> Problem:
    url = os.environ.get("AWS_ENDPOINT_URL")
    if remedy is None:
        remedy = "Correct the `AWS_` variables of the shell and ~/.aws/config."
        if url:
            remedy = f"AWS_ENDPOINT_URL is {url!r}: write a URL such as https://HOST, or unset it."
    return Problem(
        Code.AWS_SETTINGS,
        Kind.STATE,
        f"the shell's settings for AWS cannot be used: {message}",
        remedy,
    )


def _wrong_setting(error: Exception, profile: str | None) -> Problem | None:
    """Returns the problem of a setting that no log-in puts right; None for any other error."""
    message = str(error)
    if isinstance(error, ProfileNotFound):
        found = botocore.session.Session(session_vars={"profile": (None, None, None, None)})
        known = ", ".join(found.available_profiles) or "none"
        remedy = "Set AWS_PROFILE to a profile of ~/.aws/config, or unset it."
        if profile is not None:
            remedy = "Name a profile of ~/.aws/config."
        return _settings_problem(message, f"{remedy} Known: {known}.")
    if isinstance(error, ConfigParseError):
        return _settings_problem(
            message, "Correct the file: sections such as `[profile NAME]`, and `KEY = VALUE` lines."
        )
    if isinstance(error, EndpointConnectionError) and (url := os.environ.get("AWS_ENDPOINT_URL")):
        return _settings_problem(
            message,
            f"AWS_ENDPOINT_URL is {url!r}: unset it to reach AWS, or start the program that "
            "answers there.",
        )
    if isinstance(error, InvalidRetryModeError | InvalidMaxRetryAttemptsError):
        return _settings_problem(message, "Correct AWS_RETRY_MODE and AWS_MAX_ATTEMPTS.")
    return None


# Any: boto3's clients and their answers have no types of their own.
def paged(client: Any, operation: str, key: str, **arguments: Any) -> Iterator[dict[str, Any]]:
    """Yields the items under `key`, which a page may lack, on every page of an answer."""
    for page in client.get_paginator(operation).paginate(**arguments):
        yield from page.get(key, ())


def existing(call: Callable[..., Any], *missing_codes: str, **arguments: Any) -> Any:
    """Returns a boto3 call's answer; None if AWS refuses it with one of the `missing_codes`."""
    try:
        return call(**arguments)
    except ClientError as error:
        if error.response["Error"]["Code"] in missing_codes:
            return None
        raise


@contextlib.contextmanager
def account_errors() -> Iterator[None]:
    """Turns a denied or failed call to the account into a `UserError`."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise UserError.of(
            Code.LOOKUP_FAILED,
            f"the account could not be examined: {error}",
            "Use credentials that may make this call, then run the command again.",
        ) from None


def open_access(environment: Environment, root: Path, profile: str | None = None) -> Access:
    """Opens access with the shell's credentials, or with a profile of the user's files.

    Raises `UserError` if the embedded AWS is not running, there are no credentials, or they belong
    to another account.
    """
    if environment.is_local:
        return Access(environment.region, local_variables(root, environment.region))
    return open_own_access(environment, profile)


def open_own_access(environment: Environment, profile: str | None = None) -> Access:
    """Opens access with the credentials of this process, or of a profile; raises `UserError`."""
    what = f"no usable AWS credentials for environment `{environment.name}`"
    command = f"aws sso login --profile {profile}" if profile else "aws sso login"
    log_in = f"Log in to account {environment.account}, for example with `{command}`."
    access, account = _opened(environment.region, profile, what, log_in)
    if account != environment.account:
        whose = f"the credentials of profile `{profile}`" if profile else "the credentials"
        raise UserError.of(
            Code.ANOTHER_ACCOUNT,
            f"{whose} are of account {account}; environment `{environment.name}` is "
            f"account {environment.account}",
            "Name a profile of that account."
            if profile
            else "Log in to that account, or choose another environment with `--env`.",
        )
    return access


def open_shell_access(region: str | None) -> tuple[Access, str]:
    """Opens access with the shell's credentials, to whichever account they belong.

    Without a region it is that of the shell or of its profile, and is returned as well. Raises
    `UserError` if there are no credentials, or nothing names a region.
    """
    what = "no usable AWS credentials"
    log_in = "Log in to the account of the endpoint, for example with `aws sso login`."
    if region is None:
        try:
            # botocore knows the second variable only; other tools of AWS's read the first.
            region = os.environ.get("AWS_REGION") or boto3.Session().region_name
        except BotoCoreError as error:
            problem = _wrong_setting(error, None) or credentials_problem(what, error, log_in)
            raise UserError([problem]) from None
    # boto3 would put any text into the names of hosts.
    if region is None or not _REGION.fullmatch(region):
        raise UserError.of(
            Code.IMPORT_NO_REGION,
            "no region tells where the endpoint is"
            if region is None
            else f"{region!r} is no region",
            "Add `--region REGION`, such as `--region eu-west-1`, or set AWS_REGION.",
        )
    access, _ = _opened(region, None, what, log_in)
    return access, region


def _opened(region: str, profile: str | None, what: str, log_in: str) -> tuple[Access, str]:
    """Returns access with credentials that were tried, and the account that they belong to."""
    try:
        access = Access(region, {}, profile)
        access.credentials()
    # A missing profile, a program that does not start, or an answer that is not JSON. Each is the
    # user's problem, and each raises another exception.
    except Exception as error:
        problem = _wrong_setting(error, profile) or credentials_problem(what, error, log_in)
        raise UserError([problem]) from None
    try:
        account = access.client("sts").get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        problem = _wrong_setting(error, profile) or credentials_problem(what, error, log_in)
        raise UserError([problem]) from None
    except ValueError as error:  # a URL that is looked at only when it is signed
        raise UserError([_settings_problem(str(error))]) from None
    return access, account


def open_source(
    source: Environment, target: Environment, access: Access, root: Path, profile: str | None
) -> tuple[Access, bool]:
    """Opens access to the environment that an artifact is copied from; raises `UserError`.

    `access` is open to the target. The second value says whether the credentials also write the
    target.
    """
    if profile is None and not source.is_local and not target.is_local:
        return access.in_region(source.region), True
    return open_access(source, root, profile), False


def why_not_served(root: Path, image: str, backends: Sequence[str]) -> str | None:
    """Returns why the project's embedded AWS cannot serve a model; None if it can.

    `backends` are Triton's that the model needs. Raises `UserError` if it does not answer.
    """
    with _usable():
        return control.why_not_served(root, image, backends)


@contextlib.contextmanager
def _usable() -> Iterator[None]:
    """Turns an embedded AWS that does not answer into a `UserError`."""
    try:
        yield
    except LocalAwsError as error:
        raise UserError.of(
            Code.EMBEDDED_AWS_UNUSABLE, str(error), "Stop it with `slipway local stop`."
        ) from None


def local_variables(root: Path, region: str) -> dict[str, str | None]:
    """Returns the variables that point a process at the project's embedded AWS; None means unset.

    Raises `UserError` if it is not running.
    """
    with _usable():
        status = control.status(root)
    if status is None:
        raise UserError.of(
            Code.EMBEDDED_AWS_NOT_RUNNING,
            "the embedded AWS is not running",
            "Start it with `slipway local start`.",
        )
    return control.environment(status.state, region=region)
