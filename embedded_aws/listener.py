"""One loopback port for every service.

A request is dispatched by the service in its signature's credential scope: mounted applications of
this package answer first, moto answers for every other service. No request is answered that the
owner of the embedded AWS did not sign.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import io
import json
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer

from slipway.embedded_aws.admission import find_refusal
from slipway.embedded_aws.hosting.invocations.api import MAX_BODY_BYTES
from slipway.embedded_aws.identity import ACCOUNT_ID, Connection
from slipway.embedded_aws.moto_applications import moto_application
from slipway.embedded_aws.moto_patches import patch_moto
from slipway.embedded_aws.signatures import WrongSignature, refuse, verify

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

logger = logging.getLogger(__name__)

# From the parameters of a query to the answer, which becomes JSON.
OwnFunction = Callable[[Mapping[str, list[str]]], dict[str, Any]]

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.05
# Files may be closed elsewhere in the process.
_FULL_SECONDS = 1.0


class Listener:
    """The HTTP server and its dispatch; raises OSError if the port is taken.

    Args:
        port: loopback port; 0 lets the operating system choose.
        secret_access_key: signs the requests that are answered.
        clock: the account's time, in seconds since the epoch, which every answer tells.

    Attributes:
        connection: how clients reach it.
        moto: answers for the services that nothing else is mounted for.
    """

    def __init__(
        self, *, port: int, secret_access_key: str, clock: Callable[[], float] = time.time
    ) -> None:
        patch_moto()
        self._held = contextlib.ExitStack()
        # Bound here, because werkzeug ends the process if the port is taken.
        with socket.create_server((_HOST, port), backlog=128) as bound:
            own_port = bound.getsockname()[1]
            self._server = _Server(
                _HOST, own_port, self._dispatch, _RequestHandler, fd=bound.fileno()
            )
        self._clock = self._server.clock = clock
        self.port: int = self._server.port
        try:
            self._held.enter_context(_hold_other_address(self.port))
        except OSError:
            self._server.server_close()
            raise
        # moto recognises a CloudFormation template's S3 address only under the name localhost.
        self.connection = Connection(f"http://localhost:{self.port}", secret_access_key)
        self._services: dict[str, WSGIApplication] = {}
        self._invocations: WSGIApplication | None = None
        self._own: Mapping[tuple[str, str], OwnFunction] = {}
        self.moto: WSGIApplication = DomainDispatcherApplication(moto_application)
        self._thread: threading.Thread | None = None

    def mount(self, service: str, application: WSGIApplication) -> None:
        """Makes an application answer a service, by its name in a signature, instead of moto."""
        self._services[service] = application

    def mount_invocations(self, application: WSGIApplication) -> None:
        self._invocations = application

    def mount_own(self, functions: Mapping[tuple[str, str], OwnFunction]) -> None:
        self._own = functions

    def start(self) -> None:
        """Starts answering; connections are accepted from the constructor on."""
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(_POLL_SECONDS,),
            name="embedded-aws",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._held.close()

    def _dispatch(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        own = self._own.get((environ["REQUEST_METHOD"], path))
        refusal = find_refusal(environ)
        if refusal is None and own is not None:
            token = environ.get("HTTP_AUTHORIZATION", "").encode()
            if not hmac.compare_digest(token, self.connection.authorization(path).encode()):
                refusal = "Only `slipway local` may ask this."
        if refusal is not None:
            logger.warning("refused: %s", refusal)
            headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(refusal)))]
            start_response("403 Forbidden", headers)
            return [refusal.encode("ascii", "replace")]
        if own is not None:
            body = json.dumps(own(parse_qs(environ.get("QUERY_STRING", "")))).encode()
            start_response("200 OK", [("Content-Length", str(len(body)))])
            return [body]
        signature = verify(environ, self.connection.secret_access_key, self._clock())
        if isinstance(signature, WrongSignature):
            logger.warning("refused: %s", signature.message)
            return refuse(signature, environ, start_response)
        environ["slipway.request_id"] = str(uuid.uuid4())
        environ["slipway.region"] = signature.region
        environ["slipway.account_id"] = ACCOUNT_ID
        # Otherwise moto looks for the access key in every partition, and for that it reads AWS's
        # 1,500 policies once for each.
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = ACCOUNT_ID
        application = self._services.get(signature.service, self.moto)
        # SageMaker and its runtime sign with the same name, so only the path distinguishes them.
        if (
            signature.service == "sagemaker"
            and path.startswith("/endpoints/")
            and self._invocations
        ):
            application = self._invocations
        return application(environ, start_response)


@contextlib.contextmanager
def _hold_other_address(port: int) -> Generator[None]:
    """Keeps others from the port at the other loopback address.

    On most machines, `localhost` is both, and clients try ::1 first. A server of another user there
    would get the owner's signed requests. Nothing listens there, so clients go on to 127.0.0.1.
    Raises OSError if the port is taken there.
    """
    with socket.socket(socket.AF_INET6) as other:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            other.bind(("::1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
        yield


class _Server(ThreadedWSGIServer):
    """werkzeug's server, which waits while this process can open no more files."""

    clock: Callable[[], float]

    # Any: socketserver's own arguments.
    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._closed = threading.Event()
        super().__init__(*arguments, **named)

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError as error:
            # The connection still waits, so that the loop would try again at once, and so for ever.
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._closed.clear()
                self._closed.wait(_FULL_SECONDS)
            raise

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._closed.set()


class _RequestHandler(MotoRequestHandler):  # type: ignore[misc]  # moto ships no type information
    """moto's handler, with the access log sent to `logging`."""

    # Headers and body go out in two writes; on a kept-alive connection Nagle's algorithm would
    # delay the second by 40 ms.
    disable_nagle_algorithm = True
    # Between two reads or writes. Idle connections would take all threads and open files.
    timeout = 60

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Returns the account's time for the header `Date`, as AWS's servers send theirs."""
        moment: str = super().date_time_string(timestamp or self.server.clock())
        return moment

    def run_wsgi(self) -> None:
        """Answers one request; invocations keep their connection, which werkzeug never does.

        werkzeug closes every connection, because an application may leave a body unread. The data
        plane's body is bounded, so it is read here, and a load test does not pay for a connection
        per request.
        """
        lengths = set(self.headers.get_all("Content-Length", []))
        is_chunked = "Transfer-Encoding" in self.headers
        if len(lengths) + is_chunked > 1 or not all(each.isdecimal() for each in lengths):
            # Where the body ends is unknown, and so is where the next request begins.
            self.close_connection = True
            self.send_error(400, "Bad length of the body")
            return
        length = self.headers.get("Content-Length", "")
        if (
            not self.path.startswith("/endpoints/")
            or not length.isdecimal()
            or int(length) > MAX_BODY_BYTES
        ):
            super().run_wsgi()
            return
        environ = self.make_environ()
        request = self.rfile.read(int(length))
        if len(request) < int(length):
            # Its client is gone.
            self.close_connection = True
            return
        environ["wsgi.input"] = io.BytesIO(request)
        body = self.server.app(environ, self._start_response)
        try:
            self._write(body)
        except (ConnectionError, TimeoutError) as error:
            self.close_connection = True
            self.connection_dropped(error, environ)
        finally:
            if isinstance(body, Generator):
                body.close()

    def _write(self, body: Iterable[bytes]) -> None:
        self.end_headers()
        for chunk in body:
            if self._is_chunked:
                chunk = b"%x\r\n%b\r\n" % (len(chunk), chunk)
            self.wfile.write(chunk)
        if self._is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _start_response(self, status: str, headers: list[tuple[str, str]]) -> None:
        self.send_response(int(status.split(" ", 1)[0]))
        for name, value in headers:
            self.send_header(name, value)
        # A stream's length is unknown until it has ended.
        self._is_chunked = all(name != "Content-Length" for name, _ in headers)
        if self._is_chunked:
            self.send_header("Transfer-Encoding", "chunked")

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: ARG002  # werkzeug's
        logger.debug(message, *args)
