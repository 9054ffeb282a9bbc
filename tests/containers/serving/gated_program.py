"""A server process whose only batch computes until a line arrives on standard input."""

import os
import sys

from containers.serving.logs import configure_logging
from containers.serving.server import run_until_terminated
from containers.serving.settings import EnvironmentReader, ServingSettings


class GatedPredictor:
    def load(self, model_dir):
        if os.environ.get("LOAD") == "endless":
            sys.stdin.readline()

    def parse(self, body):
        return (body,)

    def predict(self, batch):
        print('{"event": "predicting"}', flush=True)
        return [sys.stdin.readline()]

    def render(self, outputs):
        return b'"answered"'


if __name__ == "__main__":
    configure_logging("INFO", sys.stdout)
    run_until_terminated(GatedPredictor(), ServingSettings.read(EnvironmentReader(os.environ)))
