"""Runs the built binary. The tests of commands share it."""
import os
import pathlib
import subprocess

HADAL = os.environ["HADAL"]
SOURCE = pathlib.Path(os.environ["HADAL_SOURCE_DIR"])
GOLDEN = SOURCE / "tests" / "golden"


def run(*args, stdin="", timeout=60):
    """The finished process; its streams are text."""
    return subprocess.run([HADAL, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=timeout)


def check_refused(test, process, *pieces):
    """Code 1, nothing on standard output, and one line of error that holds the pieces."""
    test.assertEqual(process.returncode, 1, process.stderr)
    test.assertEqual(process.stdout, "")
    lines = process.stderr.splitlines()
    test.assertEqual(len(lines), 1, process.stderr)
    test.assertTrue(lines[0].startswith("hadal: error: "), process.stderr)
    for piece in pieces:
        test.assertIn(str(piece), lines[0])
