"""A container's compile program for tests: it does what the weights' file `mode` asks for.

ok (copies the weights, with what it was told beside them), fail (writes the reason), fail-silently,
crash (status 3, no reason), slow (until it is stopped; leaves what it has), stubborn (ignores
SIGTERM), empty (writes nothing), gate PATH (as ok, once there is such a file).
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

CHANNEL = Path(os.environ["SM_CHANNEL_WEIGHTS"])
CONFIG = Path(os.environ["SM_INPUT_CONFIG_DIR"])
MODEL = Path(os.environ["SM_MODEL_DIR"])
OUTPUT = Path(os.environ["SM_OUTPUT_DIR"])


def main(arguments: list[str]) -> int:
    mode = (CHANNEL / "mode").read_text().strip() if (CHANNEL / "mode").exists() else "ok"
    print(f"compiling as {mode}: {' '.join(arguments)}", flush=True)
    if mode == "fail":
        (OUTPUT / "failure").write_text("config.json has model_type bert: only gpt2 is compiled\n")
        return 1
    if mode == "crash":
        print("Killed", file=sys.stderr, flush=True)
        return 3
    if mode in ("slow", "stubborn"):
        return wait_for_the_end(mode)
    if mode == "empty":
        return 0
    if mode.startswith("gate "):
        while not Path(mode.removeprefix("gate ")).exists():
            time.sleep(0.02)
    shutil.copytree(CHANNEL, MODEL, dirs_exist_ok=True)
    told = {
        "arguments": arguments,
        "environment": dict(os.environ),
        "config": {path.name: json.loads(path.read_text()) for path in CONFIG.iterdir()},
    }
    (MODEL / "told.json").write_text(json.dumps(told))
    (OUTPUT / "data" / "report.txt").write_text("well done")
    return 0


def wait_for_the_end(mode: str) -> int:
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = mode != "stubborn"

    signal.signal(signal.SIGTERM, stop)
    (MODEL / "half").write_text("half")
    print(f"waiting, pid {os.getpid()}", flush=True)
    while not stopped:
        time.sleep(0.02)
    (MODEL / "saved").write_text("saved in time")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
