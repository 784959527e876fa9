#!/bin/sh
# Builds the fuzz targets and runs each for some seconds; any finding fails. Inputs that were found stay in build/fuzz.
# Usage: tools/fuzz.sh [SECONDS]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
found=0
for target in build/fuzz/fuzz/*_fuzz; do
  [ -x "$target" ] || continue
  found=$((found + 1))
  name=$(basename "$target")
  mkdir -p "build/fuzz/corpus/$name"
  echo "-- $name"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
    -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus/$name"
done
[ "$found" -gt 0 ] || { echo "no fuzz target was built" >&2; exit 1; }
echo "$found fuzz targets, $seconds s each: nothing found"
