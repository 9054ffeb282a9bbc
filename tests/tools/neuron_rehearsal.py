"""The steps of `make verify-neuron` on an instance of stand-ins, whose file system is a folder."""

import os
from pathlib import Path

from tools.verification.runner import answer
from tools.verify_neuron.steps import steps

# Only this module reads it: the command itself takes devices from nowhere but `/`.
ROOT_VARIABLE = "TEST_NEURON_ROOT"

if __name__ == "__main__":
    answer(steps(Path(os.environ[ROOT_VARIABLE])))
