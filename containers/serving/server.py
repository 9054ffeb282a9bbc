"""The server process: opens the port, then loads the model, and drains on SIGTERM.

On SIGTERM the server accepts no further connections, /ping included, and closes idle ones. It
answers the requests in flight, and the process exits with 0. SageMaker takes the container out of
routing before it sends SIGTERM, and sends SIGKILL 30 s later.
"""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, NoReturn

import uvloop

from containers.serving.app import create_app
from containers.serving.connections import connections_up_to
from containers.serving.exit_codes import EXIT_OK, EXIT_OPERATOR_PROBLEM, EXIT_OWN_FAULT
from containers.serving.listening import HttpServer, ListenError, listen
from containers.serving.logs import log_error, log_info
from containers.serving.metrics import Metrics
from containers.serving.predictor import ModelLoadError, ModelLostError
from containers.serving.service import AnyPredictor, InferenceService, ServiceState
from containers.serving.settings import ServingSettings

# Idle ones and refused ones need room beside those that wait in the queue.
_CONNECTIONS_PER_PLACE: Final = 4
_SPARE_CONNECTIONS: Final = 256


class ModelServer:
    """One predictor behind one port; a test can start and stop it.

    The predictor, not loaded yet, may write to the same `metrics`; None creates them from the
    settings. `document` is the OpenAPI document, shown only if the settings say so.
    """

    # Any: a JSON document.
    def __init__(
        self,
        predictor: AnyPredictor,
        settings: ServingSettings,
        *,
        metrics: Metrics | None = None,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = settings
        self._metrics = metrics or open_metrics(settings)
        self.service = InferenceService(predictor, settings, self._metrics)
        self._uvicorn = HttpServer(
            create_app(self.service, settings, document if settings.serves_docs else None),
            settings.drain_timeout_seconds,
            connections_up_to(
                _SPARE_CONNECTIONS + _CONNECTIONS_PER_PLACE * settings.max_queue_length,
                self.service,
            ),
        )
        self._exit_code = EXIT_OK
        self.listening = asyncio.Event()
        self.port = settings.port
        self.metrics_port = settings.metrics_port

    async def serve(self) -> int:
        """Serves until `stop`; returns the exit code for the process."""
        try:
            listener, metrics_listener = self._open_ports()
        except ListenError as error:
            log_error("listen_failed", message=str(error))
            return EXIT_OPERATOR_PROBLEM
        self.port = listener.getsockname()[1]
        log_info("listening", address=self._settings.bind_address, port=self.port)
        self.listening.set()
        loading = asyncio.create_task(self._load())
        try:
            async with self._serving_metrics(metrics_listener):
                await self._uvicorn.serve(sockets=[listener])
        finally:
            loading.cancel()
            await asyncio.wait([loading])
            unanswered = self.service.requests_in_flight
            await self.service.close()
        if unanswered:
            log_error(
                "drain_timed_out",
                requests_unanswered=unanswered,
                drain_timeout_seconds=self._settings.drain_timeout_seconds,
            )
            self._exit_code = EXIT_OPERATOR_PROBLEM
        log_info("stopped", exit_code=self._exit_code)
        return self._exit_code

    def stop(self) -> None:
        """Stops accepting, answers the requests in flight, then lets `serve` return."""
        self.service.state = ServiceState.DRAINING
        log_info("draining", requests_in_flight=self.service.requests_in_flight)
        self._uvicorn.should_exit = True

    @contextlib.asynccontextmanager
    async def _serving_metrics(self, listener: socket.socket | None) -> AsyncGenerator[None, None]:
        """Answers GET /metrics on `listener`, if there is one, until the drain has ended."""
        if listener is None:
            yield
            return
        # Imported here, so that a server without a metrics port loads nothing of Prometheus.
        from containers.serving.prometheus import create_metrics_app

        self.metrics_port = listener.getsockname()[1]
        log_info("metrics_listening", address=self._settings.bind_address, port=self.metrics_port)
        server = HttpServer(create_metrics_app(self._metrics), drain_timeout_seconds=1)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield
        finally:
            server.should_exit = True
            await serving

    def _open_ports(self) -> tuple[socket.socket, socket.socket | None]:
        """Listens for requests and, if the settings name a port, for readers of the metrics.

        If one of the ports cannot be opened, neither is open.
        """
        settings = self._settings
        listener = listen(settings.bind_address, settings.port)
        if settings.metrics_port is None:
            return listener, None
        try:
            return listener, listen(settings.bind_address, settings.metrics_port)
        except ListenError:
            listener.close()
            raise

    async def _load(self) -> None:
        try:
            await self.service.load()
            await self.service.until_lost()
        except (ModelLoadError, ModelLostError) as error:
            event = "model_lost" if isinstance(error, ModelLostError) else "model_load_failed"
            log_error(event, message=str(error))
            self._exit_code = EXIT_OPERATOR_PROBLEM
        except Exception as error:
            log_error(
                "model_load_failed",
                error=error,
                message="unexpected error; the traceback is in this line",
            )
            self._exit_code = EXIT_OWN_FAULT
        self._uvicorn.should_exit |= self._exit_code != EXIT_OK


def open_metrics(settings: ServingSettings) -> Metrics:
    if settings.metrics_port is None:
        return Metrics()
    # Imported here, so that a server without a metrics port loads nothing of Prometheus.
    from containers.serving.prometheus import PrometheusMetrics

    return PrometheusMetrics()


# Any: a JSON document.
def run_until_terminated(
    predictor: AnyPredictor,
    settings: ServingSettings,
    *,
    metrics: Metrics | None = None,
    document: Mapping[str, Any] | None = None,
) -> NoReturn:
    """Serves until SIGTERM or SIGINT, then ends the process; see `ModelServer`.

    The exit code is 0 after a complete drain and 2 for an unexpected error in loading. It is 1 when
    the model directory or the port is not usable, or the model was lost. It is also 1 when requests
    were cut off at the end of the drain time-out.
    """
    _allow_many_connections()
    server = ModelServer(predictor, settings, metrics=metrics, document=document)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        exit_code = runner.run(_serve_with_signals(server))
    if server.service.is_computing:
        # A thread that is still loading or computing cannot be interrupted, and Python would wait
        # for it although its result is not needed any more.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(exit_code)
    sys.exit(exit_code)


async def _serve_with_signals(server: ModelServer) -> int:
    """SIGTERM and SIGINT stop the server while it serves, and change nothing after it.

    The loop's own handlers end with the loop. Another signal would then kill the process before its
    end.
    """
    loop = asyncio.get_running_loop()
    woken, wake = socket.socketpair()
    with woken, wake:
        wake.setblocking(False)
        # The number of each signal goes there, so that the loop wakes and Python runs the handler.
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        loop.add_reader(woken, woken.recv, 64)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(server.stop))
        try:
            return await server.serve()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            signal.set_wakeup_fd(-1)
            loop.remove_reader(woken)


def _allow_many_connections() -> None:
    """Raises the process's limit on open files to its maximum, since each connection is a file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems report a limit that they do not accept.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
