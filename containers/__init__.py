"""The programs inside SageMaker endpoints; they import nothing from the packages that deploy them.

Always import them as `containers.FAMILY`: a family's bare name would shadow NVIDIA's or OpenAI's
package of that name.
"""

import os

# ONNX Runtime reads this variable when it is imported. Its own switch comes too late: by then the
# runtime has written a device id below the home directory, and looks up Microsoft's collector.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
