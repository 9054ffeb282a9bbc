"""moto's application of one service, which refuses the operations that moto does not implement."""

import functools
import json
from typing import Any
from xml.sax.saxutils import escape

import flask
from moto.core.utils import convert_to_flask_response
from moto.moto_server.werkzeug_app import create_backend_app

_CODE = "UnknownOperationException"


def moto_application(service: str, responder: Any = None, **context: Any) -> Any:
    """Returns the WSGI application with which moto answers for a service, by moto's name of it.

    A responder takes the place of moto's. moto makes an object of its class for every request, so
    the class carries the context.
    """
    application = create_backend_app(service)
    if responder is not None:
        answering: Any = type(responder.__name__, (responder,), context)
        for endpoint in application.view_functions:
            application.view_functions[endpoint] = convert_to_flask_response(answering.dispatch)
    application.register_error_handler(NotImplementedError, functools.partial(_refuse, service))
    return application


def _refuse(service: str, error: NotImplementedError) -> tuple[str, int, dict[str, str]]:
    # moto answers 500, which clients take for an accident and try again. After some failed
    # deployments, the CDK CLI would ask CloudTrail for 25 seconds.
    message = (
        f"The embedded AWS does not implement this request to {service}: {error}. "
        "docs/embedded-aws.md lists what it does."
    )
    if "json" in flask.request.headers.get("Content-Type", ""):
        body = json.dumps({"__type": _CODE, "message": message})
        return body, 400, {"Content-Type": "application/x-amz-json-1.1"}
    told = f"<Code>{_CODE}</Code><Message>{escape(message)}</Message>"
    body = f"<ErrorResponse><Error><Type>Sender</Type>{told}</Error></ErrorResponse>"
    return body, 400, {"Content-Type": "text/xml"}
