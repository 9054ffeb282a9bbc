"""Packages made by hand, whose handlers need nothing but the server."""

from slipway import java_properties

ECHO = b"""
import json
import os

from djl_python import Output

_properties = {}


def handle(inputs):
    if inputs.is_empty():
        _properties.update(inputs.get_properties())
        return None
    output = Output(200, "OK")
    output.add(json.dumps({**_properties, "pid": str(os.getpid())}).encode(), key="data")
    output.add_property("Content-Type", "application/json")
    return output
"""
SLEEPER = b"""
import time

from djl_python import Output


def handle(inputs):
    if inputs.is_empty():
        return None
    seconds = inputs.get_as_json()["seconds"]
    time.sleep(seconds)
    return Output(200, "OK").add_as_json({"slept": seconds})
"""


def echo(**properties):
    """A package whose handler answers with the options that it was given."""
    given = {
        "engine": "Python",
        **{name.replace("__", "."): properties[name] for name in properties},
    }
    return {"model.py": ECHO, "serving.properties": java_properties.render(given)}


def seen(server):
    answer = server.wait_until_ready().post({})
    assert answer.status == 200, answer.body
    return answer.document
