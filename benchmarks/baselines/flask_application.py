"""The Flask application of both baselines, around a function that answers a request."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flask import Flask, Response, jsonify, request

from benchmarks.baselines import stack


# Any: JSON.
def make_app(answer: Callable[[Any], Any], environ: Mapping[str, str]) -> Flask:
    """Returns the application, and says in `stack.READY_DIRECTORY` that this worker can serve."""
    app = Flask(__name__)

    @app.get("/ping")
    def ping() -> Response:
        return Response(status=200)

    @app.post("/invocations")
    def invocations() -> Response:
        return jsonify(answer(request.get_json()))

    Path(environ[stack.READY_DIRECTORY], str(os.getpid())).touch()
    return app
