"""The pages, and their parts that are asked for again and again.

A page is a frame. Its parts come by htmx, and again after some seconds. A part that a browser
shows already is answered with 204, so that nothing moves under the reader.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from slipway.codes.code import Code
from slipway.config.names import LOCAL
from slipway.errors import UserError
from slipway.operations.fleet import FleetRow
from slipway.operations.invoke.realtime import MAX_BODY_BYTES
from slipway.operations.plots import STYLE, as_svg
from slipway.operations.status import Status
from slipway.planning.consequences import Consequences
from slipway.planning.plan import DeploymentPlan
from slipway.planning.review import ModelReview
from slipway.ui.guard import Guard
from slipway.ui.looks import PLOTTED_HOURS, Looks

Row = tuple[str, str]


@dataclass(frozen=True)
class Wording:
    """What `slipway list`, `plan`, `status`, `review` and `logs` print: cells of columns, and rows.

    The command line lies above this package, and hands them down. Verdicts of a status are each
    behind its word, such as `TROUBLE`. A status also takes why the files make no plan, and what a
    deploy would do. A log line becomes words.
    """

    fleet_head: Sequence[str]
    fleet_cells: Callable[[FleetRow], Sequence[str]]
    plan: Callable[[DeploymentPlan], Iterable[Row]]
    verdicts: Callable[[Status], Iterable[Row]]
    status: Callable[[Status, str | None, Consequences | None], Iterable[Row]]
    review: Callable[[ModelReview], Iterable[Row]]
    log_line: Callable[[str], str]


_HERE: Final = Path(__file__).parent
# Percent signs may make three bytes of one.
_MOST_FORM_BYTES: Final = 3 * MAX_BODY_BYTES
# Seconds between two looks. In an account calls are throttled, and CloudWatch's cost money.
_PAUSES: Final = {
    True: {"fleet": 3, "files": 3, "status": 3, "plots": 5, "log": 2, "review": 5},
    False: {"fleet": 60, "files": 5, "status": 15, "plots": 60, "log": 5, "review": 60},
}
_Content = Mapping[str, Any]


class Pages:
    def __init__(self, looks: Looks, wording: Wording) -> None:
        self._looks, self._wording = looks, wording
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {
            "environment": looks.environment_name,
            "pauses": _PAUSES[looks.environment_name == LOCAL],
            "hours": PLOTTED_HOURS,
            "words": wording,
        }

    def routes(self) -> list[Route | Mount]:
        return [
            Route("/", self._page("page.html", part="fleet")),
            Route("/review", self._page("page.html", part="review")),
            Route("/models/{name}", self._page("model.html")),
            Route("/parts/fleet", self._part("fleet_part.html", self._fleet)),
            Route("/parts/review", self._part("review_part.html", self._review)),
            Route("/models/{name}/status", self._part("status_part.html", self._status)),
            Route("/models/{name}/plan", self._part("plan_part.html", self._plan)),
            Route("/models/{name}/plots", self._part("plots_part.html", self._plots)),
            Route("/models/{name}/log", self._part("log_part.html", self._log)),
            Route("/models/{name}/invoke", self._invoke, methods=["POST"]),
            Route("/plots.css", lambda _: Response(STYLE, media_type="text/css")),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]

    def _page(self, template: str, part: str = "") -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            return self._html(template, {"part": part, **request.path_params})

        return answer

    def _part(
        self, template: str, content: Callable[[str], _Content]
    ) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            name = request.path_params.get("name", "")
            try:
                page = self._html(template, {"name": name, **content(name)})
            except UserError as error:
                page = self._html("problems.html", {"problems": error.problems})
            digest = hashlib.sha256(bytes(page.body)).hexdigest()[:16]
            if request.query_params.get("seen") == digest:
                return Response(status_code=204)
            seen = f'<input type="hidden" name="seen" value="{digest}">'
            return HTMLResponse(bytes(page.body) + seen.encode())

        return answer

    def _html(self, template: str, content: _Content) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(content))

    def _fleet(self, _name: str) -> _Content:
        fleet = self._looks.fleet()
        lines = [(row, self._wording.fleet_cells(row)) for row in fleet.rows]
        heads = self._wording.fleet_head
        # A column that is empty but for its head is left out, and what the page's head says.
        shown = [
            number
            for number, head in enumerate(heads)
            if head != "environment" and any(cells[number] for _, cells in lines)
        ]
        return {"lines": lines, "shown": shown, "unseen": fleet.unseen}

    def _review(self, _name: str) -> _Content:
        return {"found": self._looks.review()}

    def _status(self, name: str) -> _Content:
        found = self._looks.status(name)
        return {"found": found[0], "rows": self._wording.status(*found)}

    def _plan(self, name: str) -> _Content:
        return {"rows": self._wording.plan(self._looks.plan(name))}

    def _plots(self, name: str) -> _Content:
        return {"drawn": [as_svg(plot) for plot in self._looks.plots(name)]}

    def _log(self, name: str) -> _Content:
        return {"lines": self._looks.log(name)}

    async def _invoke(self, request: Request) -> Response:
        try:
            body = await _request_body(request)
            text, took = await run_in_threadpool(self._looks.ask, request.path_params["name"], body)
        except UserError as error:
            return self._html("problems.html", {"problems": error.problems})
        return self._html("answer.html", {"text": text, "took": took})


async def _request_body(request: Request) -> bytes:
    form = bytearray()
    async for chunk in request.stream():
        form += chunk
        if len(form) > _MOST_FORM_BYTES:
            raise UserError.of(
                Code.REQUEST_TOO_LARGE,
                f"the request is over {MAX_BODY_BYTES:,} bytes",
                "Send less in one request: SageMaker sets this limit.",
            )
    (body,) = parse_qs(form.decode(), keep_blank_values=True).get("body", [""])
    return body.encode()


def make_app(looks: Looks, wording: Wording, token: str, port: int) -> Guard:
    return Guard(Starlette(routes=Pages(looks, wording).routes()), token, port)
