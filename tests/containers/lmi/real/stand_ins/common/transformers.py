"""Stands in for transformers, with the config.json that lies at the path."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

from tests.containers.lmi import libraries


class AutoConfig:
    @staticmethod
    def from_pretrained(path, **_):
        print(f"stand-in: weights in {path}", flush=True)
        return SimpleNamespace(**json.loads(Path(path, "config.json").read_text()))


_module = libraries.transformers(libraries.Journal(), {})
vars(_module)["AutoConfig"] = AutoConfig
sys.modules[__name__] = _module
