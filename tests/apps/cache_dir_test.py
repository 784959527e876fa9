#!/usr/bin/env python3
"""--cache-dir: prompts are read once, across restarts, kills and damaged files."""
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest

from hadal_command import HADAL, SOURCE, check_refused, run

TINY = SOURCE / "models" / "tiny"
NUM_KILLS = 50


def prompt(seed, num_tokens=900):
    """Token ids that depend on the seed, with a beginning that all seeds share."""
    common = random.Random(1)
    ids = [0] + [common.randrange(300, 4000) for _ in range(400)]
    own = random.Random(seed)
    return ids + [own.randrange(300, 4000) for _ in range(num_tokens - len(ids))]


class CacheDir(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"

    def tokens(self, seed):
        path = self.folder / f"tokens{seed}.json"
        path.write_text(json.dumps(prompt(seed)))
        return path

    def args(self, seed, *more):
        return ["run", str(TINY), "--json", "--temperature", "0", "--max-tokens", "8", "--ignore-eos",
                "--logprobs", "1", "--tokens", str(self.tokens(seed)), *map(str, more)]

    def ask(self, seed, *more):
        process = run(*self.args(seed, *more), timeout=120)
        self.assertEqual(process.returncode, 0, process.stderr)
        return json.loads(process.stdout), process.stderr

    def same(self, found, expected):
        self.assertEqual(found["ids"], expected["ids"])
        self.assertEqual(found["logprobs"], expected["logprobs"], "to the last bit")

    def test_a_second_run_reads_the_prompt_from_disk(self):
        expected, _ = self.ask(1)
        for cached in (0, 896, 896):
            found, _ = self.ask(1, "--cache-dir", self.cache)
            self.same(found, expected)
            self.assertEqual(found["usage"]["cached_tokens"], cached)
        found, _ = self.ask(2, "--cache-dir", self.cache)
        self.same(found, self.ask(2)[0])
        self.assertEqual(found["usage"]["cached_tokens"], 384, "the beginning that both share")

    def test_rows_of_another_form_or_kernel_set_are_not_taken(self):
        self.ask(1, "--cache-dir", self.cache)
        for flags in (["--form", "absorbed"], ["--kernels", "reference"]):
            found, _ = self.ask(1, "--cache-dir", self.cache, *flags)
            self.assertEqual(found["usage"]["cached_tokens"], 0, flags)
            self.same(found, self.ask(1, *flags)[0])

    def test_damaged_files_are_told_and_ignored(self):
        expected, _ = self.ask(1, "--cache-dir", self.cache)
        files = sorted(self.cache.glob("*/*.rows"))
        self.assertEqual(len(files), 14)
        rng = random.Random(3)
        for path in files:
            content = bytearray(path.read_bytes())
            kind = rng.choice(["cut", "flip", "foreign"])
            if kind == "cut":
                content = content[: rng.randrange(len(content))]
            elif kind == "flip":
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            else:
                content = b"something else"
            path.write_bytes(content)
        found, log = self.ask(1, "--cache-dir", self.cache)
        self.same(found, expected)
        self.assertEqual(found["usage"]["cached_tokens"], 0)
        self.assertIn("the file is ignored", log)
        self.assertEqual(sum("prefix cache" in line for line in log.splitlines()), 1, log)

    def test_the_folder_stays_below_its_limit(self):
        for seed in range(4):
            self.ask(seed, "--cache-dir", self.cache, "--cache-dir-mb", 2)
            size = sum(path.stat().st_size for path in self.cache.glob("*/*"))
            self.assertLessEqual(size, 2 << 20)
            self.assertGreater(size, 1 << 20)

    def test_a_folder_that_cannot_be_used_is_told(self):
        blocker = self.folder / "file"
        blocker.write_text("x")
        check_refused(self, run(*self.args(1, "--cache-dir", blocker)), blocker)

    def test_kill_9_at_any_moment_never_gives_a_wrong_answer(self):
        seed = int.from_bytes(os.urandom(4), "little")
        rng = random.Random(seed)
        expected = {i: self.ask(i)[0] for i in range(3)}
        start = time.monotonic()
        self.ask(0, "--cache-dir", self.folder / "measure")
        duration = time.monotonic() - start
        num_cached = 0
        for kill in range(NUM_KILLS):
            victim = subprocess.Popen([HADAL, *self.args(kill % 3, "--cache-dir", self.cache)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, duration))
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            if kill % 5 == 4:
                for path in rng.sample(sorted(self.cache.glob("*/*.rows")), 3) if len(
                        list(self.cache.glob("*/*.rows"))) > 3 else []:
                    path.unlink()
            found, _ = self.ask((kill + 1) % 3, "--cache-dir", self.cache)
            self.same(found, expected[(kill + 1) % 3])
            num_cached += found["usage"]["cached_tokens"]
        self.assertGreater(num_cached, 0, f"seed {seed}: nothing was read, so this shows nothing")


if __name__ == "__main__":
    unittest.main()
