"""What stands for the image on the embedded AWS: the same server, without the image."""

import sys
from pathlib import Path

from slipway.families import ContainerProgram
from slipway_lookup.section import REPOSITORY

PROGRAMS = {
    REPOSITORY: ContainerProgram((sys.executable, str(Path(__file__).with_name("server.py"))))
}
