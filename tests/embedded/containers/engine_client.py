"""Stands for an engine's client: a container is a process, and its state are files here.

`create` keeps the program and `start` runs it, after as many seconds as the image's name says.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main(state: Path, words: list[str]) -> int:
    command, arguments = words[0], words[1:]
    with (state / "calls").open("a") as calls:
        print(" ".join([command, *arguments][:2]), file=calls)
    if command == "create":
        seconds, program = arguments[-2:]
        if seconds == "absent":
            print("Error: no such image", file=sys.stderr)
            return 125
        (state / "program").write_text(program)
        (state / "seconds").write_text(seconds)
        print("0123456789ab")
    elif command == "start":
        time.sleep(float((state / "seconds").read_text()))
        program = subprocess.Popen([sys.executable, "-u", "-c", (state / "program").read_text()])
        (state / "unnamed").write_text(str(program.pid))
        (state / "unnamed").rename(state / "pid")
        status = program.wait()
        return status if status >= 0 else 128 - status
    elif command == "exec":
        os.execv(sys.executable, [sys.executable, *arguments[3:]])  # noqa: S606
    elif command == "kill":
        if not (state / "pid").exists():
            return 1
        os.kill(int((state / "pid").read_text()), signal.Signals[f"SIG{arguments[0][9:]}"])
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
