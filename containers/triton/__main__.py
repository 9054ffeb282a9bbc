"""The container's program: `python -m containers.triton serve`, or `compile`.

It keeps to Python 3.10.
"""

import os
import sys

from containers.triton.start import COMMANDS, serve

if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        sys.exit(f"usage: python -m containers.triton {{{','.join(COMMANDS)}}}")
    if arguments[0] == "compile":
        # Imported here, so that serving does not load it.
        from containers.triton.compile.checkpoint import run

        sys.exit(run(os.environ))
    serve(os.environ)
