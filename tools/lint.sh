#!/bin/sh
# clang-tidy over the sources, on all cores. Needs a configured build (for its compile commands).
# Usage: tools/lint.sh [BUILD_DIR] [FILE ...]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/test}
[ $# -gt 0 ] && shift
[ -f "$build/compile_commands.json" ] || { echo "$build has no compile_commands.json: configure it first" >&2; exit 2; }
if [ $# -gt 0 ]; then
  printf '%s\n' "$@"
else
  # The kernels of an instruction set are intrinsics from end to end; their own tests hold them.
  git ls-files 'src/*.cc' | grep -v '^src/kernels/'
fi | xargs -P "$(nproc)" -n 1 clang-tidy-14 -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option
