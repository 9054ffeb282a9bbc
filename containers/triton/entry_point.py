"""The images' entry point: chooses the CUDA driver library, then becomes the program.

It takes the place of the base's entry point, which is NVIDIA's and makes that choice.
`containers.tensorrt.start` has the rules. This module keeps to Python 3.10.
"""

import os
import sys

from containers.tensorrt.start import main

if __name__ == "__main__":
    main(sys.argv[1:], os.environ, program="containers.triton")
