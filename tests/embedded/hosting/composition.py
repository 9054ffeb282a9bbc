"""An embedded AWS for these tests: hosting and moto, with the stand-in as its only container."""

import contextlib
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.clock import AccountClock
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.embedded_aws.hosting.invocations.api import RESPONSE_TIMEOUT_SECONDS, InvocationApi
from slipway.embedded_aws.hosting.resources.tags import Tags
from slipway.embedded_aws.hosting.service import Hosting
from slipway.embedded_aws.identity import STATUS_PATH
from slipway.embedded_aws.listener import Listener
from slipway.embedded_aws.quotas import EndpointQuotas
from slipway.embedded_aws.reported_refusals import ReportedRefusal
from tests.support.accounts import SECRET_ACCESS_KEY

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/tests/stand-in:1"
PROGRAMS = {
    "tests/stand-in": ContainerProgram(
        (sys.executable, str(Path(__file__).with_name("stand_in.py"))), {"FROM_IMAGE": "yes"}
    )
}


@contextlib.contextmanager
def hosting(
    directory: Path,
    *,
    time_scale: float = 1.0,
    clock: AccountClock | None = None,
    refused: Collection[ReportedRefusal] = (),
    without_capacity: Collection[str] = (),
) -> Iterator[LoopbackClients]:
    listener = Listener(port=0, secret_access_key=SECRET_ACCESS_KEY)
    clients = LoopbackClients(listener.connection)
    service = Hosting(
        clients,
        directory,
        programs=PROGRAMS,
        tags=Tags(),
        quotas=EndpointQuotas(),
        clock=clock or AccountClock(),
        beside={},
        engine=None,
        time_scale=time_scale,
        refused=refused,
        without_capacity=without_capacity,
        project=Path(__file__).parent,
    )
    listener.mount("sagemaker", service.api)
    listener.mount_invocations(
        InvocationApi(service, timeout_seconds=RESPONSE_TIMEOUT_SECONDS * time_scale)
    )
    listener.mount_own({("GET", STATUS_PATH): lambda _: {"endpoints": service.summaries()}})
    listener.start()
    try:
        yield clients
    finally:
        service.close()
        listener.stop()
        clients.close()
