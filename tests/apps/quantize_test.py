"""hadal quantize: how near the result is, that it goes on after kill -9, and what it refuses."""
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from hadal_command import GOLDEN, HADAL, SOURCE, check_refused, run

TINY = SOURCE / "models" / "tiny"
HELD = GOLDEN / "evaluate" / "held.json"
MODELS = GOLDEN / "models"


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "model"

    def quantize(self, source, *flags, out=None):
        process = run("quantize", source, out or self.out, "--json", *flags, timeout=600)
        self.assertEqual(process.returncode, 0, process.stderr)
        return json.loads(process.stdout)


class Quality(Folder):
    """Against the bundled model's BF16 weights, on prose that neither it nor the calibration has seen."""
    wide = None

    @classmethod
    def setUpClass(cls):
        cls.stored = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.stored.cleanup)
        cls.wide = pathlib.Path(cls.stored.name) / "wide.safetensors"
        process = run("eval", TINY, "--text", HELD, "--specials", "--first-text", 140, "--store", cls.wide, timeout=600)
        assert process.returncode == 0, process.stderr

    def distance(self, *flags):
        process = run("eval", self.out, "--text", HELD, "--specials", "--first-text", 140, "--against", self.wide, "--json",
                      *flags, timeout=600)
        self.assertEqual(process.returncode, 0, process.stderr)
        return json.loads(process.stdout)

    def test_eight_bits(self):
        self.quantize(TINY, "--format", "int8", "--calibration", "none")
        report = self.distance("--activations", "float32")
        self.assertEqual(report["tokens"], 19972)
        self.assertLessEqual(report["kl"], 0.0004)
        self.assertGreaterEqual(report["mtp_agreement"], 0.665 - 0.02)

    def test_four_bits(self):
        report = self.quantize(TINY, "--format", "int4")
        self.assertLessEqual(report["bits_per_weight"], 4.5)
        exact = self.distance("--activations", "float32")
        self.assertLessEqual(exact["kl"], 0.0045)
        self.assertGreaterEqual(exact["mtp_agreement"], 0.665 - 0.02)
        self.assertGreaterEqual(exact["top1_agreement"], 0.95)
        self.assertLessEqual(self.distance()["kl"], 0.006)  # as it runs

    def test_four_bits_by_size_alone_are_below_plain_rounding(self):
        self.quantize(TINY, "--format", "int4", "--calibration", "none")
        self.assertLessEqual(self.distance("--activations", "float32")["kl"], 0.0060)


class Resuming(Folder):
    def test_kill_at_any_moment(self):
        flags = ["--format", "int4", "--calibration-tokens", "600", "--threads", "2"]
        self.quantize(TINY, *flags, out=self.folder / "whole")
        expected = (self.folder / "whole" / "model.safetensors").read_bytes()
        command = [HADAL, "quantize", TINY, self.out, *flags]
        delay, kills = 0.05, 0
        while True:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                _, error = process.communicate(timeout=delay)
                self.assertEqual(process.returncode, 0, error)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
                # The half-written folder is no model.
                self.assertEqual(run("inspect", self.out).returncode, 1)
                delay *= 1.6
        self.assertGreater(kills, 2)
        self.assertEqual((self.out / "model.safetensors").read_bytes(), expected)
        self.assertEqual(sorted(p.name for p in self.out.iterdir()),
                         sorted(p.name for p in (self.folder / "whole").iterdir()))
        self.assertEqual(run("inspect", self.out, "--check").returncode, 0)

    def test_other_options_do_not_continue(self):
        process = subprocess.Popen([HADAL, "quantize", TINY, self.out, "--calibration-tokens", "5000"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (self.out / "quantize.journal").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        check_refused(self, run("quantize", TINY, self.out, "--calibration-tokens", "5000"), "another process")
        process.kill()
        process.wait()
        check_refused(self, run("quantize", TINY, self.out, "--format", "int8", "--calibration", "none"), "--force")
        self.quantize(TINY, "--format", "int8", "--calibration", "none", "--force")

    def test_damage_is_found(self):
        self.quantize(TINY, "--format", "int8", "--calibration", "none")
        path = self.out / "model.safetensors"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
        check_refused(self, run("inspect", self.out, "--check"), "checksum")


class Models(Folder):
    def test_every_golden_model_in_every_format(self):
        ids = self.folder / "ids.json"
        ids.write_text("[5, 6, 7, 8]")
        for model in sorted(p for p in MODELS.iterdir() if p.is_dir() and p.name.startswith("v")):
            for flags in (["--format", "int8"], ["--format", "int4"],
                          ["--format", "int4", "--group-size", 64, "--zero-points"]):
                with self.subTest(model=model.name, flags=flags):
                    self.quantize(model / "model", "--force", *flags)
                    process = run("run", self.out, "--tokens", ids, "--max-tokens", 3, "--ignore-eos", "--json")
                    self.assertEqual(process.returncode, 0, process.stderr)
                    self.assertEqual(len(json.loads(process.stdout)["ids"]), 3)
                    self.assertEqual(json.loads(run("inspect", self.out, "--json").stdout)["unused_tensors"], 0)

    def test_the_folder_chats_like_the_source(self):
        self.quantize(TINY, "--format", "int8", "--calibration", "none")
        for model in TINY, self.out:
            process = run("run", model, "-p", "What is the capital of France?", "--temperature", 0)
            self.assertIn("The capital of France is Paris.", process.stdout)

    def test_a_recipe_decides(self):
        recipe = self.folder / "recipe.json"
        recipe.write_text(json.dumps({"rules": [{"match": "*.experts.*", "format": "int8", "group_size": 128},
                                                {"match": "*", "format": "keep"}]}))
        self.quantize(TINY, "--recipe", recipe, "--calibration", "none")
        tensors = {t["name"]: t for t in json.loads(run("inspect", self.out, "--tensors", "--json").stdout)["tensors"]}
        self.assertEqual(tensors["model.layers.1.mlp.experts.3.up_proj.weight"]["dtype"], "U8")
        self.assertEqual(tensors["model.layers.1.self_attn.o_proj.weight"]["dtype"], "BF16")
        self.assertEqual(tensors["lm_head.weight"]["dtype"], "BF16")

    def test_rounding_at_load(self):
        ids = self.folder / "ids.json"
        ids.write_text("[5, 6, 7, 8]")
        for flags in (["--format", "int8"], ["--format", "int4"], ["--group-size", 32, "--format", "int4"]):
            process = run("run", TINY, "-p", "What is the capital of France?", "--temperature", 0, *flags)
            self.assertIn("The capital of France is Paris.", process.stdout)
            process = run("run", MODELS / "v32-fp8-ue8m0" / "model", "--tokens", ids, "--max-tokens", 3, *flags)
            self.assertEqual(process.returncode, 0, process.stderr)
        self.quantize(TINY, "--format", "int8", "--calibration", "none")
        check_refused(self, run("run", self.out, "-p", "x", "--format", "int4"), self.out, "quantised")


class BadInput(Folder):
    def test_folders(self):
        check_refused(self, run("quantize", self.folder / "none", self.out), "none")
        self.out.mkdir()
        (self.out / "precious").write_text("x")
        check_refused(self, run("quantize", TINY, self.out), self.out, "--force")
        self.assertEqual([p.name for p in self.out.iterdir()], ["precious"])
        copy = self.folder / "copy"
        shutil.copytree(TINY, copy)
        check_refused(self, run("quantize", copy, copy, "--force"), "another folder than the source")
        self.assertTrue((copy / "model.safetensors").exists())

    def test_what_is_quantised_already(self):
        self.quantize(TINY, "--format", "int8", "--calibration", "none")
        check_refused(self, run("quantize", self.out, self.folder / "again"), "expected wide or FP8 weights")

    def test_recipes_and_texts(self):
        recipe = self.folder / "recipe.json"
        for text, piece in (("{", "recipe.json"), ('{"rules": [{"match": "*"}]}', "rules[0]"), ('{"format": "int5"}', "int5")):
            recipe.write_text(text)
            check_refused(self, run("quantize", TINY, self.out, "--recipe", recipe), piece)
        check_refused(self, run("quantize", TINY, self.out, "--calibration", "/no/such/text"), "/no/such/text")
        check_refused(self, run("quantize", MODELS / "v3-f32" / "model", self.out, "--calibration", HELD), "tokenizer.json")
        self.assertFalse(self.out.exists())

    def test_wrong_usage(self):
        for flags in (["--format", "int5"], ["--group-size", 48], ["--calibration-tokens", 1], ["--threads", -1]):
            self.assertEqual(run("quantize", TINY, self.out, *flags).returncode, 2)
        self.assertEqual(run("quantize", TINY).returncode, 2)


if __name__ == "__main__":
    unittest.main()
