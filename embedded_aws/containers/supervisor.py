"""Runs one container, and ensures that it never outlives the embedded AWS.

This is a program of its own: `python -S -m embedded_aws.containers.supervisor ORDERS`. It creates
the container, passes its output on, and carries connections to it (`tunnel`). End of file on
standard input means "stop", as in `embedded_aws/processes/supervisor.py`: the container gets
SIGTERM, and GRACE_SECONDS later SIGKILL. SIGUSR1 means "kill it now". At the end the container is
removed. The exit status is the container's (128 + N for signal N).

It uses only the standard library and `tunnel`, so that it starts quickly.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from slipway.embedded_aws.containers import tunnel

_RETRY_SECONDS = 0.1


@dataclass(frozen=True)
class Orders:
    """The orders of one container.

    Args:
        command: the engine's client, with the options before every command.
        create: arguments of `create` after the name.
        port: loopback port that the supervisor listens on.
        container_port: port that the container listens on, on its own loopback.
        python: the Python in the image that runs the tunnel's other end.
    """

    command: tuple[str, ...]
    name: str
    create: tuple[str, ...]
    port: int
    container_port: int
    python: str
    grace_seconds: float

    def text(self) -> str:
        return json.dumps(asdict(self))


class Supervisor:
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._tunnel: tunnel.Tunnel | None = None
        self._stop = asyncio.Event()
        self._kill = asyncio.Event()

    async def run(self) -> int:
        """Runs the container until it or standard input ends; returns the exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGUSR1, self._kill.set)
        loop.add_reader(0, self._read_input)
        orders = self._orders
        created = await self._client("create", f"--name={orders.name}", *orders.create)
        try:
            # The engine's own words are the reason, and become lines of the log.
            if (status := await created.wait()) != 0:
                return status
            return await self._attend()
        finally:
            removal = await self._client("rm", "--force", "--volumes", orders.name, is_silent=True)
            await removal.wait()

    async def _attend(self) -> int:
        container = await self._client("start", "--attach", self._orders.name)
        server = await asyncio.start_server(self._accept, "127.0.0.1", self._orders.port)
        tasks = [asyncio.create_task(each) for each in (self._keep_tunnel(), self._await_stop())]
        try:
            return await container.wait()
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _read_input(self) -> None:
        if not os.read(0, 64):
            asyncio.get_running_loop().remove_reader(0)
            self._stop.set()

    async def _await_stop(self) -> None:
        """Ends the container once it shall stop."""
        stop, kill = (asyncio.create_task(each.wait()) for each in (self._stop, self._kill))
        await asyncio.wait({stop, kill}, return_when=asyncio.FIRST_COMPLETED)
        if not self._kill.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._orders.grace_seconds):
                    await self._signal("TERM")
                    await kill
        await self._signal("KILL")

    async def _signal(self, name: str) -> None:
        # A container that is only being started takes no signal yet.
        while True:
            sent = await self._client("kill", f"--signal={name}", self._orders.name, is_silent=True)
            if await sent.wait() == 0:
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _keep_tunnel(self) -> None:
        """Runs the other end of the tunnel, again where it ends before the container does."""
        source = Path(tunnel.__file__).read_text("utf-8")
        orders = self._orders
        words = (orders.python, "-I", "-S", "-c", source, str(orders.container_port))
        while True:
            other = await asyncio.create_subprocess_exec(
                *orders.command, "exec", "--interactive", orders.name, *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            if other.stdin is None or other.stdout is None:
                raise TypeError("the tunnel was started without pipes")
            try:
                self._tunnel = tunnel.Tunnel(other.stdout, other.stdin)
                await self._tunnel.run()
                await other.wait()
            finally:
                self._tunnel = None
                with contextlib.suppress(ProcessLookupError):
                    other.kill()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._tunnel is None:
            # As a port on which nothing listens.
            writer.close()
            return
        await self._tunnel.carry(reader, writer)

    async def _client(self, *arguments: str, is_silent: bool = False) -> asyncio.subprocess.Process:
        output = asyncio.subprocess.DEVNULL if is_silent else None
        # The name that `create` prints is no line of the container's.
        stdout = asyncio.subprocess.DEVNULL if arguments[0] == "create" else output
        return await asyncio.create_subprocess_exec(
            *self._orders.command,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=output,
        )


def main(arguments: Sequence[str]) -> int:
    # The server blocks the signals that stop it, and blocked signals are inherited.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return asyncio.run(Supervisor(Orders(**json.loads(arguments[0]))).run())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
