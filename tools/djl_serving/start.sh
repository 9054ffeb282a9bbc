#!/bin/sh
# Starts DJL Serving with what its published start script sets.
set -eu
program=$0
while [ -h "$program" ]; do
  link=$(readlink "$program")
  case $link in
    /*) program=$link ;;
    *) program=$(dirname "$program")/$link ;;
  esac
done
APP_HOME=$(cd "$(dirname "$program")/.." && pwd -P)
export APP_HOME
export MODEL_SERVER_HOME="${MODEL_SERVER_HOME:-$APP_HOME}"
if [ -z "${OMP_NUM_THREADS:-}" ] && [ -z "${NO_OMP_NUM_THREADS:-}" ]; then
  export OMP_NUM_THREADS=1
fi
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
# Each of these variables holds several options, separated by spaces.
# shellcheck disable=SC2086
exec "$java" ${DEFAULT_JVM_OPTS:--Dlog4j.configurationFile=$APP_HOME/conf/log4j2.xml} \
  ${JAVA_OPTS:-} ${SERVING_OPTS:-} \
  -classpath "$APP_HOME/lib/*" ai.djl.serving.ModelServer "$@"
