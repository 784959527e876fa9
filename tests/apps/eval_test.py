"""hadal eval against the perplexities that were measured elsewhere, and what it says to bad input."""
import json
import pathlib
import tempfile
import unittest

from hadal_command import GOLDEN, SOURCE, check_refused, run

TEXTS = GOLDEN / "evaluate"
TINY = SOURCE / "models" / "tiny"
SMALL = GOLDEN / "models" / "v3-f32" / "model"


def evaluate(*flags):
    process = run("eval", *flags, "--json", timeout=300)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


class KnownPerplexities(unittest.TestCase):
    def check(self, report, tokens, perplexity, windows):
        self.assertEqual(report["windows"], windows)
        self.assertEqual(report["tokens"], tokens)
        self.assertLess(abs(report["perplexity"] / perplexity - 1), 1e-3)
        self.assertGreater(report["stderr"], 0)

    def test_plain_text_in_whole_windows(self):
        self.check(evaluate("--text", TEXTS / "moby_dick.txt"), 11264 - 22, 75.53, 22)
        self.check(evaluate("--text", TEXTS / "zh_tang300.txt"), 2048 - 4, 18.17, 4)

    def test_texts_of_the_generators(self):
        report = evaluate("--text", TEXTS / "held.json", "--specials", "--num-texts", 60)
        self.check(report, 6472, 1.437, 60)
        self.assertAlmostEqual(report["mtp_agreement"], 0.960, delta=0.002)

    def test_prose(self):
        report = evaluate("--text", TEXTS / "held.json", "--specials", "--first-text", 140)
        self.check(report, 19972, 66.0, 51)
        self.assertAlmostEqual(report["mtp_agreement"], 0.665, delta=0.002)
        self.assertIsNone(report["kl"])


class Against(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_itself_and_its_stored_logits(self):
        stored = self.folder / "logits.safetensors"
        flags = ["--text", TEXTS / "zh_tang300.txt", "--max-tokens", 1024]
        alone = evaluate(*flags, "--store", stored)
        for other in TINY, stored:
            report = evaluate(*flags, "--against", other)
            self.assertEqual(report["tokens"], 1022)
            self.assertLess(abs(report["kl"]), 1e-9)
            self.assertEqual(report["top1_agreement"], 1.0)
            self.assertEqual(report["against_nll"], alone["nll"])
        check_refused(self, run("eval", *flags, "--window", 100, "--against", stored), stored, "windows")

    # C066: an 8-bit cache of latents ended in an assertion, or in garbage.
    def test_a_cache_of_bytes_agrees_with_one_of_16_bits(self):
        stored = self.folder / "logits.safetensors"
        flags = ["--text", TEXTS / "moby_dick.txt", "--window", 1024, "--max-tokens", 2048]
        evaluate(*flags, "--cache-type", "bf16", "--store", stored)
        report = evaluate(*flags, "--cache-type", "q8", "--against", stored)
        self.assertEqual(report["tokens"], 2046)
        self.assertGreaterEqual(report["top1_agreement"], 0.98)
        self.assertGreater(report["kl"], 1e-7, "the same cache twice")
        report = evaluate(*flags, "--cache-type", "q16", "--against", stored)
        self.assertGreaterEqual(report["top1_agreement"], 0.99)
        self.assertGreater(report["kl"], 1e-8, "the same cache twice")

    def test_a_table_for_people(self):
        process = run("eval", "--text", TEXTS / "zh_tang300.txt", "--max-tokens", 512, "--against", TINY)
        self.assertEqual(process.returncode, 0, process.stderr)
        for word in "perplexity", "KL divergence", "same best token", "MTP agreement":
            self.assertIn(word, process.stdout)


class Choices(unittest.TestCase):
    QUESTIONS = [{"question": "Once there was a dog, and the dog was a good", "choices": ["dog", "Quixotic zebra-zygote"],
                  "answer": 0, "subject": "dogs"},
                 {"question": "The king of", "choices": ["xylophones[]{}", "England"], "answer": "B"}]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "questions.jsonl"
        self.path.write_text("".join(json.dumps(q) + "\n" for q in self.QUESTIONS))

    def test_accuracy_in_both_styles(self):
        report = evaluate("--choices", self.path, "--style", "text")
        self.assertEqual(report["questions"], 2)
        self.assertEqual(report["accuracy"], 1.0)
        self.assertEqual(report["by_subject"]["dogs"]["accuracy"], 1.0)
        self.assertEqual(evaluate("--choices", self.path, "--shots", 1)["questions"], 1)

    def test_bad_questions(self):
        self.path.write_text('{"question": "q", "choices": ["a", "b"], "answer": 2}')
        check_refused(self, run("eval", "--choices", self.path), self.path, "line 1", "answer", "2")
        self.path.write_text("")
        check_refused(self, run("eval", "--choices", self.path), self.path, "questions")


class BadInput(unittest.TestCase):
    def test_files(self):
        check_refused(self, run("eval", "--text", "/no/such/text"), "/no/such/text")
        check_refused(self, run("eval", SMALL, "--text", TEXTS / "moby_dick.txt"), "tokenizer.json")
        check_refused(self, run("eval", "--text", TEXTS / "moby_dick.txt", "--window", 4000), "2048", "4000")
        check_refused(self, run("eval", "--text", TEXTS / "zh_tang300.txt", "--against", "/no/model"), "/no/model")

    def test_wrong_usage(self):
        text = ["--text", TEXTS / "moby_dick.txt"]
        for flags in ([], text + ["--choices", "x"], text + ["--window", 1], text + ["--style", "song"]):
            with self.subTest(flags):
                self.assertEqual(run("eval", *flags).returncode, 2)


if __name__ == "__main__":
    unittest.main()
