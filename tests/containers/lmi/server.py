"""The server's side of a call: what DJL Serving sends a handler, and makes of its answer.

`Server` does what the Java side does with requests that come one by one or together; how it names
the parts of a batch changed twice. `Input` and `Output` come from the stand-in below or from the
real `djl_python`.
"""

from __future__ import annotations

import json
import re

HEADERS = {"content-type": "application/json"}
_BATCH_KEY = re.compile(r"batch_(\d+)\.(.*)")


class Server:
    """One worker with a handler; `version` names the parts of a batch: 0.21, 0.24 or 0.25."""

    def __init__(self, handle, new_input, version):
        self._handle = handle
        self._new_input = new_input
        self._version = version

    def start(self, **options):
        """Makes the empty call that loads the model; returns the handler's answer."""
        call = self._new_input()
        call.properties.update({"model_dir": "/opt/ml/model", **options})
        return self._handle(call)

    def started(self, **options):
        assert self.start(**options) is None
        return self

    def post(self, body):
        """Sends one request alone; returns status and document."""
        call = self._new_input()
        call.properties.update(HEADERS)
        call.content.add(key="data", value=encoded(body))
        output = self._handle(call)
        assert output.content.size() == 1
        assert output.properties == {"Content-Type": "application/json"}
        return output.code, json.loads(bytes(output.content.value_at(0)))

    def refusal(self, body):
        status, document = self.post(body)
        assert (status, document["error"]["code"]) == (400, "invalid_request")
        return str(document["error"]["message"])

    def post_together(self, *bodies):
        call = self._new_input()
        call.properties["batch_size"] = str(len(bodies))
        if self._version == "0.21":
            call.properties.update(HEADERS)
        for index, body in enumerate(bodies):
            prefix = f"batch_{index:03}." if self._version == "0.25" else f"batch_{index}."
            if self._version != "0.21":
                call.properties.update({prefix + key: value for key, value in HEADERS.items()})
            call.content.add(key=prefix + "data", value=encoded(body))
        output = self._handle(call)
        if output.code >= 300:
            document = json.loads(bytes(output.content.value_at(0)))
            return [(output.code, document)] * len(bodies)
        assert output.content.size() == len(bodies), "Batch output size mismatch"
        documents = {}
        for position in range(output.content.size()):
            match = _BATCH_KEY.fullmatch(output.content.key_at(position))
            assert match, f"Unexpected batch output key: {output.content.key_at(position)}"
            assert match[2] == "data"
            documents[int(match[1])] = json.loads(bytes(output.content.value_at(position)))
        return [(output.code, documents[index]) for index in range(len(bodies))]


def encoded(body):
    return bytearray(body if isinstance(body, bytes) else json.dumps(body).encode())


class StandInContent:
    """Stands in for `djl_python.PairList`."""

    def __init__(self):
        self._pairs = []

    def add(self, key, value):
        self._pairs.append((key, value))

    def size(self):
        return len(self._pairs)

    def key_at(self, index):
        return self._pairs[index][0]

    def value_at(self, index):
        return self._pairs[index][1]


class StandInInput:
    """Stands in for `djl_python.Input` of 0.21 to 0.23."""

    prefix_length = len("batch_0.")

    def __init__(self):
        self.properties = {}
        self.content = StandInContent()

    def is_empty(self):
        return not self.content.size()

    def is_batch(self):
        return int(self.properties.get("batch_size", "1")) > 1

    def get_properties(self):
        return self.properties

    def get_as_bytes(self):
        return self.content.value_at(0) if self.content.size() else None

    def get_batches(self):
        if not self.is_batch():
            return [self]
        items = [type(self)() for _ in range(int(self.properties["batch_size"]))]
        for position in range(self.content.size()):
            key = self.content.key_at(position)
            index = int(key[len("batch_") : self.prefix_length - 1])
            items[index].content.add(key[self.prefix_length :], self.content.value_at(position))
        return items


class StandInInputOf024(StandInInput):
    """Stands in for `djl_python.Input` of 0.24, where a batch may hold one request."""

    def is_batch(self):
        return "batch_size" in self.properties


class StandInInputOf025(StandInInputOf024):
    """Stands in for `djl_python.Input` from 0.25 on."""

    prefix_length = len("batch_000.")


STAND_IN_INPUTS = {"0.21": StandInInput, "0.24": StandInInputOf024, "0.25": StandInInputOf025}


class StandInOutput:
    """Stands in for `djl_python.Output`."""

    def __init__(self, code=200, message="OK"):
        self.code = code
        self.message = message
        self.properties = {}
        self.content = StandInContent()

    def add_property(self, key, val):
        self.properties[key] = val

    def add(self, value, key, batch_index=None):
        self.content.add(key if batch_index is None else f"batch_{batch_index}.{key}", value)
