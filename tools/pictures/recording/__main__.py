"""`python -m tools.pictures.recording`: runs the demo and writes its output beside this module.

Times, the port and the process number are of that run. `make pictures` then draws the session.
"""

import os
import subprocess
import sys
from pathlib import Path

from tools.pictures.recording import TRANSCRIPT

_ROOT = Path(__file__).parents[3]


def main() -> int:
    """Returns the demo's exit code; a demo that fails is not recorded."""
    folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": os.pathsep.join([folder, os.environ["PATH"]])}
    lines = []
    with subprocess.Popen(  # noqa: S603  # the project's own program
        [sys.executable, _ROOT / "demo.py"],
        cwd=_ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as demo:
        for line in demo.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if demo.returncode == 0:
        TRANSCRIPT.write_text("\n".join(lines).strip() + "\n", "utf-8")
        print(f"\nwrote {TRANSCRIPT.relative_to(_ROOT)}; `make pictures` draws it")
    return demo.returncode


if __name__ == "__main__":
    sys.exit(main())
