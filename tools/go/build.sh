#!/bin/sh
# Builds a Go program: build.sh FOLDER PACKAGE PLACE [PATTERN...], with patterns of its modules whose
# speed is measured. Ends with 69 without a Go toolchain or a module proxy in reach.
set -eu
cd "$1"
package=$2 place=$3
shift 3
if ! command -v go > /dev/null; then
  echo "Go is not on the PATH: https://go.dev/doc/install" >&2
  exit 69
fi
# Another Go is not downloaded, and the user's own flags do not change what is built.
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0
if ! loaded=$(go mod download 2>&1); then
  case $loaded in
    # Of Go: a module has another hash than go.sum. The build says so too.
    *"SECURITY ERROR"*) ;;
    *)
      printf '`go mod download` failed:\n%s\n' "$loaded" >&2
      exit 69
      ;;
  esac
fi
# Optimising some thousand packages is a good half of a build's time, and debug information much of
# the rest. Of two patterns for a package, Go takes the later one.
optimised=
for pattern; do optimised="$optimised -gcflags=$pattern="; done
mkdir -p "${place%/*}"
# Renamed once it is whole. No pattern has spaces.
# shellcheck disable=SC2086
if ! built=$(go build -trimpath -o "$place.$$" "-ldflags=-s -w" "-gcflags=all=-N -l -dwarf=false" \
  -gcflags=std= $optimised "$package" 2>&1); then
  printf '`go build` failed:\n%s\n%s\n' "$loaded" "$built" >&2
  exit 1
fi
mv "$place.$$" "$place"
