#!/usr/bin/env python3
"""Clients that people use (npm, pinned in package-lock.json) against a running server. Needs node and what
`tools/setup.sh test` installs; without them the test is skipped (exit code 77) and says so."""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "apps"))
from served import Server  # noqa: E402


def main():
    node = shutil.which("node")
    if node is None or not (HERE / "node_modules").is_dir():
        print("skipped: node or tests/clients/node_modules is not there; run tools/setup.sh test")
        return 77
    with Server("--quiet") as server:
        files = sorted(str(path) for path in HERE.glob("*.test.mjs"))
        environment = {**os.environ, "HADAL_URL": server.url}
        tests = subprocess.run([node, "--test", "--test-reporter=spec", *files], env=environment, timeout=240)
        code = server.close()
    print(server.errors, end="")
    return tests.returncode or code


if __name__ == "__main__":
    sys.exit(main())
