#!/bin/sh
# Installs what is missing of the Debian packages that hadal is built with, and of the npm packages of the clients in
# tests/clients, and says which.
# Usage: tools/setup.sh build | test | ci
set -eu

build="g++ cmake ninja-build libfmt-dev libspdlog-dev nlohmann-json3-dev libsimdjson-dev libcli11-dev \
libboost1.81-dev libssl-dev libcurl4-openssl-dev prometheus-cpp-dev"
test="libgtest-dev libgmock-dev python3 binutils nodejs npm openssl"
ci="clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev libbenchmark-dev git chromium prometheus"

case "${1:-build}" in
  build) packages="$build" ;;
  test) packages="$build $test" ;;
  ci) packages="$build $test $ci" ;;
  *) echo "usage: $0 build | test | ci" >&2; exit 2 ;;
esac

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
# A node from elsewhere brings its own npm; Debian's would conflict with it.
if command -v npm >/dev/null 2>&1; then
  missing=$(printf '%s' "$missing" | sed 's/ nodejs//; s/ npm//')
fi

# Into tests/clients/node_modules, when the lock file is newer than what is there.
install_clients() {
  [ "${1:-build}" != build ] || return 0
  clients="$(dirname "$0")/../tests/clients"
  installed="$clients/node_modules/.package-lock.json"
  if [ -e "$installed" ] && [ ! "$clients/package-lock.json" -nt "$installed" ]; then return 0; fi
  echo "Installing with npm: the clients in tests/clients"
  (cd "$clients" && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json)
}

if [ -z "$missing" ]; then
  install_clients "$@"
  exit 0
fi

echo "Installing with apt-get:$missing"
run=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo "Not root and no sudo: install these yourself." >&2; exit 1; }
  run="sudo"
fi
# shellcheck disable=SC2086
$run apt-get update -qq
# shellcheck disable=SC2086
$run env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
install_clients "$@"
