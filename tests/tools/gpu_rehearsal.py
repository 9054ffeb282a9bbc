"""`make verify-gpu` without a GPU: the packages of `gpu_standins` must come first on the path."""

import sys

from tools.verify_gpu.__main__ import main

if __name__ == "__main__":
    # No driver is started; only a test can ask for that.
    sys.exit(main(start=lambda: None))
