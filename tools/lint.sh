#!/bin/sh
# clang-tidy over the sources, on all cores. --quick leaves out the analyzer, which takes most of the time.
# Usage: tools/lint.sh [--quick] [FILE ...]
set -eu
cd "$(dirname "$0")/.."
checks=
if [ "${1:-}" = --quick ]; then
  checks=-clang-analyzer-*
  shift
fi
# A configuration of its own: clang does not read g++'s precompiled headers.
cmake --preset test -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
if [ $# -gt 0 ]; then
  printf '%s\n' "$@"
else
  # The kernels of an instruction set are intrinsics from end to end; their own tests hold them.
  git ls-files 'src/*.cc' | grep -v '^src/kernels/'
fi | xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build/lint --quiet --checks="$checks" --extra-arg=-Wno-unknown-warning-option
