#!/bin/sh
# clang-tidy over the sources, on all cores. --quick is what the checks of every change run: without the analyzer, which
# takes most of the time, and with several sources of a module as one, so that their headers are read once.
# Usage: tools/lint.sh [--quick] [FILE ...]
set -eu
cd "$(dirname "$0")/.."
checks=
joined=OFF
if [ "${1:-}" = --quick ]; then
  # The joined sources include .cc files.
  checks=-clang-analyzer-*,-bugprone-suspicious-include
  shift
  if [ $# -eq 0 ]; then joined=ON; fi
fi
# A configuration of its own: clang does not read g++'s precompiled headers.
build=build/lint
if [ $joined = ON ]; then build=build/lint_joined; fi
cmake --preset test -B $build -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DHADAL_JOIN_SOURCES=$joined >/dev/null
if [ $# -gt 0 ]; then
  printf '%s\n' "$@"
else
  # The kernels of an instruction set are intrinsics from end to end; their own tests hold them.
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' $build/compile_commands.json |
    sed -n "s|^$PWD/||p" | grep -E "^($build/)?src/" | grep -v '^src/kernels/'
fi | xargs -P "$(nproc)" -n 1 clang-tidy-14 -p $build --quiet --checks="$checks" --extra-arg=-Wno-unknown-warning-option
