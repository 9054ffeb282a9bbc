"""Looks at the files and the account, once for all browsers that ask for the same.

The project is read anew at each look, and the embedded AWS is found anew, so that neither an edit
nor a restart needs another page.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from slipway.access import Access, account_errors, local_variables, open_access
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.json_text import parse_json
from slipway.operations.fleet import NOT_DEPLOYED, Fleet, find_fleet
from slipway.operations.history import find_history
from slipway.operations.invoke.asynchronous import invoke_async
from slipway.operations.invoke.realtime import Request, invoke, mode_and_queue
from slipway.operations.logs import LogEvent, find_groups, last_lines, read_log
from slipway.operations.plots import Plot
from slipway.operations.reviewing import ChangeReview, review_deployed
from slipway.operations.status import Status, find_model_status
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.consequences import Consequences
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from slipway.shared_endpoints import endpoint_name

_MOST_LINES: Final = 400
_FIRST_LINES: Final = 100
# CloudWatch may show an event later than one with a later time.
_LATE: Final = timedelta(seconds=30)


class LogTail:
    """Remembers what was read, so that each look asks for the newest lines only."""

    def __init__(self) -> None:
        self._lines: list[LogEvent] = []

    def look(self, logs: Any, stack_name: str) -> list[LogEvent]:
        groups = find_groups(logs, stack_name)
        if not groups or not self._lines:
            found = [line for group in groups for line in _last(logs, group)]
        else:
            start = self._lines[-1].at - _LATE
            # CloudWatch may answer a late line twice. The newer answer replaces the older one.
            found = [line for line in self._lines if line.at < start]
            found += [line for group in groups for line in read_log(logs, group, start)]
        self._lines = sorted(found, key=lambda line: line.at)[-_MOST_LINES:]
        return self._lines


def _last(logs: Any, group: str) -> Iterator[LogEvent]:
    for line in last_lines(logs, group, _FIRST_LINES):
        yield LogEvent(line.at, group, line.stream, line.text)


ModelStatus = tuple[Status, str | None, Consequences | None]
"""As `find_model_status` returns it."""

PLOTTED_HOURS: Final = 3
_Result = TypeVar("_Result")
# An answer serves every browser that asks within this time.
_FRESH_SECONDS: Final = 1.0
# Of credentials; they are checked anew then.
_ACCESS_SECONDS: Final = 60.0
_WAIT_SECONDS: Final = 60.0


@dataclass
class _Shared:
    lock: threading.Lock = field(default_factory=threading.Lock)
    seen_at: float | None = None
    result: Any = None


class Looks:
    """One environment of one project; `opening` opens access in place of the commands' way."""

    def __init__(
        self,
        root: Path,
        environment: str,
        opening: Callable[[Environment, Path], Access] | None = None,
    ) -> None:
        self._root, self.environment_name = root, environment
        self._opening = opening or self._open
        self._lock = threading.Lock()
        self._shared: dict[tuple[str, ...], _Shared] = {}
        self._tails: dict[str, LogTail] = {}

    def fleet(self) -> Fleet:

        def look() -> Fleet:
            project, environment = self._project()
            return find_fleet(project, environment, self._access(environment))

        return self._once(look, "fleet")

    def plan(self, name: str) -> DeploymentPlan:
        project, environment = self._project()
        return project.plan(name, environment, allow_unpublished=True)

    def status(self, name: str) -> ModelStatus:

        def look() -> ModelStatus:
            project, environment = self._project()
            return find_model_status(project, name, environment, self._access(environment), 0)

        return self._once(look, "status", name)

    def plots(self, name: str) -> list[Plot]:
        """Returns the plots of the last hours; none without an endpoint."""

        def look() -> list[Plot]:
            endpoint = self.status(name)[0].endpoint
            if endpoint is None:
                return []
            _, environment = self._project()
            return find_history(self._access(environment), endpoint, PLOTTED_HOURS).plots()

        return self._once(look, "plots", name)

    def log(self, name: str) -> list[LogEvent]:

        def look() -> list[LogEvent]:
            project, environment = self._project()
            access, writer = self._access(environment), project.base_named_in(name) or name
            with self._lock:
                tail = self._tails.setdefault(name, LogTail())
            return tail.look(access.client("logs"), environment.stack_name(writer))

        return self._once(look, "log", name)

    def review(self) -> ChangeReview:
        """Compares the files of what is deployed with it, as `slipway review --live` does."""

        def look() -> ChangeReview:
            project, environment = self._project()
            fleet = self.fleet()
            names = [
                row.model
                for row in fleet.rows
                if row.has_file and (fleet.unseen or row.state != NOT_DEPLOYED)
            ]
            return review_deployed(project, names, self._access(environment), environment)

        return self._once(look, "review")

    def ask(self, name: str, body: bytes) -> tuple[str, str]:
        """Returns the answer to a request with a JSON body, and how long it took."""
        try:
            parse_json(body.decode())
        except ValueError as error:
            raise UserError.of(
                Code.NOT_JSON, f"the request is not JSON: {error}", "Write valid JSON."
            ) from None
        project, environment = self._project()
        mode, queue = mode_and_queue(project, name, environment.name)
        component = environment.stack_name(name) if mode == SCALE_TO_ZERO else None
        endpoint = endpoint_name(project, name, environment)
        json = "application/json"
        request = Request(endpoint, body, json, json, variant=None, component=component)
        access = self._access(environment)
        if queue is not None:
            limit = _WAIT_SECONDS
            late = invoke_async(request, queue, access, limit_seconds=limit, show=lambda _: None)
            return _text(late.body), f"answered after {late.waited_seconds:.1f} s"
        answer = invoke(request, access)
        took = f"{answer.variant} answered in {answer.latency_seconds * 1000:.1f} ms"
        return _text(answer.body), took

    def _project(self) -> tuple[Project, Environment]:
        project = Project(self._root)
        return project, project.environment(self.environment_name)

    def _access(self, environment: Environment) -> Access:
        return self._opening(environment, self._root)

    def _open(self, environment: Environment, root: Path) -> Access:
        """Returns access that is kept, because botocore reads its tables anew for another."""
        if not environment.is_local:
            return self._once(
                lambda: open_access(environment, root), "access", seconds=_ACCESS_SECONDS
            )
        # Another embedded AWS has another address or another secret.
        running = local_variables(root, environment.region)
        key = ("access", *map(str, running.values()))
        return self._once(lambda: Access(environment.region, running), *key, seconds=float("inf"))

    def _once(
        self, look: Callable[[], _Result], *key: str, seconds: float = _FRESH_SECONDS
    ) -> _Result:
        """Returns a fresh result; the first thread that asks looks for all."""
        with self._lock:
            shared = self._shared.setdefault(key, _Shared())
        with shared.lock:
            if shared.seen_at is None or time.monotonic() - shared.seen_at > seconds:
                with account_errors():
                    result = look()
                shared.result, shared.seen_at = result, time.monotonic()
            found: _Result = shared.result
            return found


def _text(body: bytes) -> str:
    return body.decode(errors="replace")
