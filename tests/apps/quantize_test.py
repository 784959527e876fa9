"""hadal quantize: what it writes runs and is near the model it was made from; what it refuses."""
import json
import pathlib
import tempfile
import unittest

from hadal_command import GOLDEN, SOURCE, check_refused, run

TINY = SOURCE / "models" / "tiny"
HELD = GOLDEN / "evaluate" / "held.json"
CALIBRATION = GOLDEN / "evaluate" / "moby_dick.txt"


class Quantize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "model"

    def quantize(self, *flags):
        process = run("quantize", TINY, self.out, "--json", "--force", *flags, timeout=400)
        self.assertEqual(process.returncode, 0, process.stderr)
        return json.loads(process.stdout)

    def distance(self, *flags):
        """From the wide weights, on prose that the model has not seen."""
        process = run("eval", self.out, "--text", HELD, "--specials", "--first-text", 140, "--num-texts", 20,
                      "--against", TINY, "--json", *flags, timeout=400)
        self.assertEqual(process.returncode, 0, process.stderr)
        return json.loads(process.stdout)

    def test_eight_bits_are_near(self):
        self.quantize("--format", "int8")
        report = self.distance("--activations", "float32")
        self.assertEqual(report["tokens"], 9085)
        self.assertLessEqual(report["kl"], 0.0004)
        self.assertGreaterEqual(report["mtp_agreement"], 0.6945 - 0.02)  # of the wide weights on these texts

    def test_four_bits_beat_plain_rounding_and_a_calibration_text_helps(self):
        self.quantize("--format", "int4")
        by_size = self.distance("--activations", "float32")
        self.assertLess(by_size["kl"], 0.0064)
        self.quantize("--format", "int4", "--calibration", CALIBRATION, "--calibration-tokens", 8192)
        by_inputs = self.distance("--activations", "float32")
        self.assertLess(by_inputs["kl"], by_size["kl"])
        self.assertGreaterEqual(by_inputs["mtp_agreement"], 0.6945 - 0.02)

    def test_rounded_activations_cost_little(self):
        self.quantize("--format", "int4")
        exact, rounded = self.distance("--activations", "float32"), self.distance()
        self.assertLess(rounded["kl"], exact["kl"] + 0.001)

    def test_what_it_refuses(self):
        check_refused(self, run("quantize", self.folder / "nothing", self.out), "nothing")
        self.quantize("--format", "int8")
        check_refused(self, run("quantize", self.out, self.folder / "again"), self.out)


if __name__ == "__main__":
    unittest.main()
