#!/bin/sh
# Its libraries are found by this variable, as the embedded AWS's Triton finds them.
export LD_LIBRARY_PATH=/opt/tritonserver/libraries:/usr/local/lib
exec /opt/tritonserver/program/tritonserver --backend-directory=/opt/tritonserver/backends "$@"
