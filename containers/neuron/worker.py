"""A worker: one model on its own NeuronCores, which computes the batches that the program sends.

    python -m containers.neuron.worker MODEL_DIR THREADS BATCHES SOCKET...

The program starts it with NEURON_RT_VISIBLE_CORES in its environment, so that the variable is set
before anything of Neuron is imported. Each socket is a lane: one batch at a time, on a thread of
its own. BATCHES are computed at a time, and the batches of the other lanes wait here. The cores
thus begin the next batch while the answer to the last one travels. In a pipeline, one model
computes as many batches at a time as it takes to keep all its cores busy.

It ends when the program closes its standard input, which also happens when the program dies.
Signals that a terminal or a supervisor sends to every process are ignored here: the program decides
what to do.

It keeps to Python 3.10, NumPy and the framework; see the package.
"""

import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from containers.encoders.manifest import Manifest, read_manifest
from containers.encoders.session import Session, computed, warm_up
from containers.neuron import messages
from containers.neuron.messages import ConnectionLostError, Message
from containers.neuron.runtimes.selection import open_session
from containers.serving.predictor import ModelLoadError

EXIT_REFUSED: Final = 1
EXIT_FAILED: Final = 3


def main(arguments: Sequence[str]) -> int:
    """Serves until the program closes standard input; returns the exit code of the process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_program, daemon=True).start()
    model_dir, threads = Path(arguments[0]), int(arguments[1])
    turns = threading.Semaphore(int(arguments[2]))
    lanes = [socket.socket(fileno=int(number)) for number in arguments[3:]]
    try:
        manifest = read_manifest(model_dir)
        session = open_session(model_dir, manifest, threads=threads)
        warm_up(session, manifest)
    except ModelLoadError as error:
        messages.send(lanes[0], Message(messages.REFUSED, text=str(error)))
        return EXIT_REFUSED
    except Exception as error:
        traceback.print_exc()
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        messages.send(lanes[0], Message(messages.REFUSED, text=text))
        return EXIT_REFUSED
    messages.send(lanes[0], Message(messages.READY))
    serving = [
        threading.Thread(target=serve_lane, args=(lane, session, manifest, turns)) for lane in lanes
    ]
    for thread in serving:
        thread.start()
    for thread in serving:
        thread.join()
    return 0


def serve_lane(
    lane: socket.socket, session: Session, manifest: Manifest, turns: threading.Semaphore
) -> None:
    """Computes one batch after the other until the program closes the lane.

    A batch that fails ends the process. The device is in an unknown state then, and a process that
    went on might fail every batch after it.

    `turns` limits the batches that all lanes compute at a time.
    """
    while True:
        try:
            inputs = messages.receive(lane).arrays
        except ConnectionLostError:
            return
        try:
            with turns:
                outputs = computed(session, manifest, inputs)
        # A framework or a runtime may raise anything.
        except Exception as error:
            traceback.print_exc()
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
            messages.send(lane, Message(messages.FAILED, text=text))
            sys.stderr.flush()
            os._exit(EXIT_FAILED)
        try:
            messages.send(lane, Message(messages.OUTPUTS, arrays=outputs))
        except ConnectionLostError:
            return


def _end_with_program() -> None:
    """Ends this process when the other end of its standard input is closed."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    sys.stderr.flush()
    # Skips the shutdown of a framework's threads and memory, which would take seconds.
    os._exit(exit_code)
