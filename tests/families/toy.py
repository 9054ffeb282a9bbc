"""A toy serving family: its section, its planning, its program. It answers with the text reversed.

A test puts this module on the path, beside the list of its entry points, and changes nothing else.
"""

from __future__ import annotations

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from slipway.planning.families.family import Family
    from slipway.publishing.packaging import Packaging

REPOSITORY = "example/toy"


def section() -> Any:
    from pydantic import Field

    from slipway.config.sections.base import Section

    class ToyServing(Section):
        """A server that reverses texts."""

        container: Literal["toy"] = Field(description="Container family.")
        greeting: str = Field(description="Words before each answer.")
        dtype: ClassVar[None] = None

    return ToyServing


def family() -> Family[Any]:
    """Returns the entry; imports wait until planning can be loaded."""
    from slipway.codes.code import Code
    from slipway.planning.families.family import Family
    from slipway.planning.plan import ImagePlan
    from slipway.planning.situation import Situation, problem

    class Toy(Situation):
        needs_accelerator = False

        @property
        def given_image(self) -> ImagePlan:
            return ImagePlan(self.environment.account, self.region, REPOSITORY, "1")

        def container_environment(self) -> dict[str, str]:
            return {"TOY_GREETING": self.config.serving.greeting}

        def memory_layout(self, instance: Any, accelerator: Any) -> None:
            return None

        cached_tokens = 0

    def greeting_is_polite(toy: Toy) -> Any:
        if toy.config.serving.greeting == "Hey":
            yield problem(
                Code.LMI_OPTION_VALUE, "`Hey` is no greeting", "Say hello.", ("serving", "greeting")
            )

    return Family(Toy, (greeting_is_polite,))


def packaging() -> Packaging:
    from slipway.publishing.packaging import Packaging

    return Packaging()


def program() -> Any:
    from embedded_aws.hosting.families.program import ContainerProgram

    return ContainerProgram((sys.executable, str(Path(__file__).resolve())))


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        mark = Path(os.environ["SM_MODEL_DIR"], "mark").read_text("utf-8").strip()
        self._answer(f"{os.environ['TOY_GREETING']} {text[::-1]}{mark}".encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(os.environ["SAGEMAKER_BIND_TO_PORT"])
    HTTPServer(("127.0.0.1", port), _Handler).serve_forever()
