#!/bin/bash
# Copies a Python so that it runs from any folder: PREFIX NAME DESTINATION, such as python3.12 for the name.
set -euo pipefail
prefix=$1 name=$2 destination=$3
mkdir -p "$destination/bin" "$destination/lib/$name/site-packages"
# Neither a server nor an installer needs what is left out.
tar -C "$prefix/lib" -cf - --exclude=test --exclude=idlelib --exclude=lib2to3 --exclude=turtledemo \
  --exclude=site-packages --exclude=__pycache__ --exclude='config-*' --exclude='*.a' "$name" \
  | tar -C "$destination/lib" -xf -
for library in "$prefix/lib/lib$name.so"*; do
  [ ! -e "$library" ] || cp -P "$library" "$destination/lib"
done
cp "$prefix/bin/$name" "$destination/bin"
ln -s "$name" "$destination/bin/python3"
ln -s "$name" "$destination/bin/python"
# Else the program looks for its library where it was built.
patchelf --set-rpath "\$ORIGIN/../lib" "$destination/bin/$name"
