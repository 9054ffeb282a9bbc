"""An embedded AWS in the tests' own process, and what its end leaves of it."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from moto.core.config import default_user_config
from moto.moto_api._internal import moto_api_backend

from slipway.access import Access
from slipway.embedded_aws.identity import Connection
from slipway.embedded_aws.listener import Listener
from slipway.embedded_aws.objects import ObjectFront
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.aws_models import share_tables
from tests.support.projects import LOCAL
from tests.support.starts import count_start

# Of every embedded AWS here; `slipway local start` makes another one at each start.
SECRET_ACCESS_KEY = "of-the-tests"  # noqa: S105  # nobody else's
_ONE_AT_A_TIME = threading.Lock()

share_tables()


@contextmanager
def embedded_aws(directory: Path, **options: Any) -> Iterator[EmbeddedAws]:
    """Runs one on a free port, with an empty account, and leaves none.

    The accounts belong to the process, and the second of two would empty the first one's: it raises
    a RuntimeError. A module whose tests share one starts no other.
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise RuntimeError("an embedded AWS already runs in this process, with its accounts")
    count_start("server")
    forget_accounts()
    try:
        with EmbeddedAws(
            port=0, secret_access_key=SECRET_ACCESS_KEY, directory=directory, **options
        ) as server:
            yield server
    finally:
        forget_accounts()
        # An embedded AWS turns this on. Other tests' servers would read the policies after each
        # reset, half a second for every test.
        default_user_config["iam"]["load_aws_managed_policies"] = False
        _ONE_AT_A_TIME.release()


@contextmanager
def object_storage() -> Iterator[str]:
    """Runs S3 as the embedded AWS has it, beside moto's other services; gives its URL.

    The accounts belong to the process: `forget_accounts` empties them.
    """
    count_start("server")
    listener = Listener(port=0, secret_access_key=SECRET_ACCESS_KEY)
    listener.mount("s3", ObjectFront(listener.moto))
    listener.start()
    try:
        yield listener.connection.url
    finally:
        listener.stop()


def access_to(url: str, region: str = LOCAL.region) -> Access:
    return Access(region, connection_to(url).variables())


class _Denying(Access):
    """Access that may not make some calls."""

    denied: tuple[str, ...] = ()

    def client(self, service: str, config: Any = None) -> Any:
        client = super().client(service, config)

        def deny(model: Any, **_: Any) -> None:
            if model.name in self.denied:
                error = {"Code": "AccessDenied", "Message": "not yours"}
                raise ClientError({"Error": error}, model.name)

        client.meta.events.register("before-call", deny)
        return client


def denying_access(url: str, *denied: str) -> Access:
    """Returns clients to which AWS denies some operations."""
    found = _Denying(LOCAL.region, connection_to(url).variables())
    found.denied = denied
    return found


def connection_to(url: str) -> Connection:
    return Connection(url, SECRET_ACCESS_KEY)


def forget_accounts() -> None:
    """Empties moto's back ends, which belong to the process and not to a server."""
    # moto makes every back end anew before it drops it, and IAM's then reads a thousand policies.
    iam = default_user_config["iam"]
    loads_policies = iam["load_aws_managed_policies"]
    iam["load_aws_managed_policies"] = False
    try:
        moto_api_backend.reset()
    finally:
        iam["load_aws_managed_policies"] = loads_policies


def shell_environment(connection: Connection) -> dict[str, str]:
    """A user's variables in a shell whose programs reach an embedded AWS."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **others,
        **connection.variables(),
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
