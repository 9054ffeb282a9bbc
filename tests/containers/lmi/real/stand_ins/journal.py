"""What the worker asked of the stand-ins, said on its standard output, which is in the log."""

import json
from typing import Any

from tests.containers.lmi import libraries


class _Said(list[dict[str, Any]]):
    def append(self, call):
        print(f"stand-in: generates for {json.dumps(call['prompts'])}", flush=True)
        super().append(call)


JOURNAL = libraries.Journal(calls=_Said())
