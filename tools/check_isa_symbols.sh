#!/bin/sh
# check_isa_symbols.sh OBJECT...
# Fails when an object of a kernel set could leak wide instructions into the rest of the program: a weak symbol (an
# inline function or template that the linker may merge with another object's copy), or any number of exported
# functions but one.
set -eu
[ $# -gt 0 ] || { echo "usage: $0 OBJECT..." >&2; exit 2; }
faults=0
for object in "$@"; do
  symbols=$(nm -C "$object")
  weak=$(printf '%s\n' "$symbols" | grep -E ' [VvWwu] ' || true)
  if [ -n "$weak" ]; then
    printf '%s: weak symbols:\n%s\n' "$object" "$weak"
    faults=$((faults + 1))
  fi
  exported=$(printf '%s\n' "$symbols" | grep -E '^[0-9a-fA-F]+ [A-TX-Z] ' || true)
  count=$(printf '%s' "$exported" | grep -c . || true)
  if [ "$count" -ne 1 ]; then
    printf '%s: expected one exported symbol, found %s:\n%s\n' "$object" "$count" "$exported"
    faults=$((faults + 1))
  fi
done
echo "checked $# objects: $faults faults"
[ "$faults" -eq 0 ]
