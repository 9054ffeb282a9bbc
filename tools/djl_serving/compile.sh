#!/bin/bash
# Compiles parts of DJL Serving into jars beside their libraries:
#   compile.sh VERSION SOURCES CLASSES LIBRARIES PART..., the parts in the order of dependencies
set -euo pipefail
version=$1 sources=$2 classes=$3 libraries=$4
shift 4

# Adds the Python part, which the server unpacks by the list of its files. The releases' own build
# leaves some files out of it.
add_worker() {
  tar -C "$1" --exclude=tests --exclude=setup.py --exclude=PyPiDescription.rst -cf - . \
    | tar -C "$2" -xf -
  printf "\n__version__ = '%s'\n" "$version" >> "$2/djl_python/__init__.py"
  listed=$(cd "$1" && find djl_python -type f ! -path '*/tests/*' ! -name setup.py \
    ! -name PyPiDescription.rst | LC_ALL=C sort | paste -sd, -)
  mkdir -p "$2/native/lib"
  printf 'version=%s\nlibraries=djl_python_engine.py,%s\n' "$version" "$listed" \
    > "$2/native/lib/python.properties"
}

for part in "$@"; do
  name=${part##*/}
  main=$sources/$part/src/main
  own=$classes/$name
  mkdir -p "$own"
  find "$main/java" -name '*.java' | LC_ALL=C sort > "$own.files"
  javac -nowarn -proc:none -encoding UTF-8 -cp "$libraries/*" -d "$own" "@$own.files"
  [ ! -d "$main/resources" ] || cp -R "$main/resources/." "$own"
  [ "$name" != python ] || add_worker "$sources/$part/setup" "$own"
  set -- --create --file "$libraries/$name-$version.jar"
  [ "$name" != serving ] || set -- "$@" --main-class ai.djl.serving.ModelServer
  jar "$@" -C "$own" .
done
