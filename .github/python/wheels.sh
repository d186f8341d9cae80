#!/usr/bin/env bash
# Packs the programs that GoReleaser left in DIST as wheels, one for each platform:
#
#   .github/python/wheels.sh VERSION DIST OUT
#
# The programs are static, so one wheel for Linux serves glibc and musl. Go 1.26 makes
# programs for macOS 12 and newer (https://go.dev/doc/go1.25#darwin). Needs a python3 with the packages of
# requirements.txt. The same programs and commit give the same wheels.
set -euo pipefail
version=$1
dist=$(realpath "$2")
out=$(realpath -m "$3")
root=$(realpath "$(dirname "$0")/../..")

pack() { # PROGRAM PLATFORM
  tree=$(mktemp -d)
  cp "$root"/.github/python/{pyproject.toml,hatch_build.py} "$root/README.md" "$root/LICENSE" "$tree"
  install -m 755 "$1" "$tree/builder"
  VERSION=$version PLATFORM=$2 SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct) \
    python3 -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$out" "$tree"
  rm -r "$tree"
}

for program in "$dist"/builder_*/builder; do
  case $program in
    *linux_amd64*) pack "$program" manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64 ;;
    *linux_arm64*) pack "$program" manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64 ;;
    *darwin_amd64*) pack "$program" macosx_12_0_x86_64 ;;
    *darwin_arm64*) pack "$program" macosx_12_0_arm64 ;;
    *) echo "wheels.sh: no platform tag is known for $program" >&2; exit 1 ;;
  esac
done
