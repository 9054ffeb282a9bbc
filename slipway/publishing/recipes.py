"""Records of which artifact was made of which inputs, so that an expensive artifact is made once.

Each build of an engine gives other bytes, and a repository's commit always gives the same. Neither
has to be done again to know its artifact. `recipes/KEY.json` in the bucket says which artifact was
made of which inputs. It is written after the artifact's manifest.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.planning.lock import LockedPart


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what an artifact holds, as plain data."""

    inputs: Mapping[str, Any]

    @property
    def key(self) -> str:
        canonical = json.dumps(self.inputs, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def record(self, made: LockedPart) -> bytes:
        content = {
            "version": 1,
            "inputs": self.inputs,
            "made": made.model_dump(mode="json", exclude_none=True),
        }
        return json.dumps(content, indent=2, sort_keys=True).encode()

    def read(self, record: bytes) -> LockedPart | None:
        """Returns what was made; None where the record is another format's."""
        try:
            content = json.loads(record)
            if content["version"] != 1:
                return None
            return LockedPart.model_validate(content["made"])
        except (ValueError, KeyError, TypeError):
            return None
