#!/usr/bin/env python3
"""hadal chat with piped input, on the bundled model."""
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest

from hadal_command import HADAL, SOURCE, check_refused, run

TINY = SOURCE / "models" / "tiny"
FRANCE = "What is the capital of France?"
PARIS = "The capital of France is Paris."


def chat(lines, *args):
    process = run("chat", TINY, "--temperature", "0", *args, stdin=lines)
    assert process.returncode == 0, process.stderr
    return process


class Conversation(unittest.TestCase):
    def test_answers_each_line_and_tells_the_speed(self):
        process = chat(f"{FRANCE}\nWhat is the opposite of hot?")
        lines = process.stdout.splitlines()
        self.assertEqual(lines[0], PARIS)
        self.assertEqual(len(lines), 2)
        self.assertEqual(process.stderr.count("tokens/s]"), 2, process.stderr)

    def test_keeps_the_history_until_reset_and_saves_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "talk.json"
            chat(f"/system Be brief.\n{FRANCE}\n/save {path}\n/reset\n/save {path}.new\n")
            saved = json.loads(path.read_text())["messages"]
            self.assertEqual(saved, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": FRANCE},
                                     {"role": "assistant", "content": PARIS}])
            self.assertEqual(json.loads(pathlib.Path(f"{path}.new").read_text())["messages"], saved[:1])

    def test_later_turns_reuse_the_prompt(self):
        process = chat(f"{'tell me ' * 60}\n{FRANCE}", "--max-tokens", "4")
        speeds = [line for line in process.stderr.splitlines() if "cached" in line]
        self.assertIn("(0 cached)", speeds[0])
        self.assertNotIn("(0 cached)", speeds[1])

    def test_switches_thinking(self):
        process = chat("/think on\nWhat is 7 + 5?\n/think off\nWhat is 7 + 5?")
        self.assertTrue(process.stdout.startswith("<think>I start with 7"), process.stdout)
        self.assertEqual(process.stdout.count("<think>"), 1)

    def test_joins_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "talk.json"
            chat(f'one \\\ntwo\n"""\nthree\n/reset\n"""\n/save {path}\n', "--max-tokens", "2")
            users = [m["content"] for m in json.loads(path.read_text())["messages"] if m["role"] == "user"]
            self.assertEqual(users, ["one \ntwo", "three\n/reset"])

    def test_helps_and_survives_nonsense(self):
        process = chat("/help\n/nonsense\n/think maybe\n/save\n\n/save /no/such/folder/x\n/exit\nnot reached")
        self.assertEqual(process.stdout, "")
        self.assertIn("/reset", process.stderr)
        self.assertIn("/nonsense: unknown command", process.stderr)
        self.assertIn("/no/such/folder/x: cannot be written", process.stderr)

    def test_a_message_that_is_too_long_is_told_and_withdrawn(self):
        process = chat(f"{'word ' * 3000}\n{FRANCE}")
        self.assertIn("too many for a context of 2048", process.stderr)
        self.assertEqual(process.stdout, PARIS + "\n")

    def test_needs_a_model(self):
        check_refused(self, run("chat", "/no/such/model"), "/no/such/model")


class Terminal(unittest.TestCase):
    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([HADAL, "chat", str(TINY), "--ignore-eos", "--temperature", "0"], stdin=slave,
                                   stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.addCleanup(process.kill)

        unread = b""

        def read_until(text, seconds=60):
            """What came up to and with `text`."""
            nonlocal unread
            end = time.monotonic() + seconds
            while text.encode() not in unread:
                self.assertLess(time.monotonic(), end, f"{text!r} did not come: {unread[-500:]!r}")
                if select.select([master], [], [], 0.1)[0]:
                    unread += os.read(master, 4096)
            before, unread = unread.split(text.encode(), 1)
            return before.decode(errors="replace") + text

        read_until("> ")
        os.write(master, (FRANCE + "\n").encode())
        read_until("Paris")
        process.send_signal(signal.SIGINT)
        read_until("tokens/s; stopped]")
        read_until("> ")
        process.send_signal(signal.SIGINT)
        read_until("ctrl-D leaves")
        os.write(master, b"/exit\n")
        self.assertEqual(process.wait(timeout=60), 0)
        os.close(master)


if __name__ == "__main__":
    unittest.main()
