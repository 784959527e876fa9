"""hadal synth: the model that it writes runs, and what it refuses."""
import json
import pathlib
import tempfile
import unittest

from hadal_command import SOURCE, check_refused, run

TINY = SOURCE / "models" / "tiny" / "config.json"


class Synth(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "model"

    def synth(self, *flags):
        process = run("synth", self.out, "--shape", TINY, *flags)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process

    def test_every_format_runs(self):
        ids = self.folder / "ids.json"
        ids.write_text("[5, 6, 7]")
        for flags in (["--format", "bf16"], ["--format", "fp8"], ["--format", "int8", "--group-size", 128],
                      ["--format", "int4"], ["--format", "int4", "--group-size", 64, "--zero-points"]):
            with self.subTest(flags):
                self.synth("--force", *flags)
                answer = run("run", self.out, "--tokens", ids, "--max-tokens", 4, "--ignore-eos", "--json")
                self.assertEqual(answer.returncode, 0, answer.stderr)
                self.assertEqual(len(json.loads(answer.stdout)["ids"]), 4)

    def test_the_report_agrees_with_inspect(self):
        report = json.loads(self.synth("--format", "int4", "--layers", 2, "--json").stdout)
        found = json.loads(run("inspect", self.out, "--json").stdout)
        self.assertEqual(report["weight_bytes"], found["weight_bytes"])
        self.assertEqual(report["tensors"], found["num_tensors"])
        self.assertEqual(report["parameters"], found["parameters_total"] + found["parameters_mtp"])
        self.assertEqual(found["num_hidden_layers"], 2)
        self.assertEqual(found["unused_tensors"], 0)

    def test_a_seed_is_repeatable(self):
        self.synth("--seed", 7)
        first = (self.out / "model.safetensors").read_bytes()
        self.synth("--seed", 7, "--force", "--threads", 3)
        self.assertEqual((self.out / "model.safetensors").read_bytes(), first)
        self.synth("--seed", 8, "--force")
        self.assertNotEqual((self.out / "model.safetensors").read_bytes(), first)

    def test_a_folder_with_something_in_it_is_left_alone(self):
        self.out.mkdir()
        (self.out / "precious").write_text("x")
        check_refused(self, run("synth", self.out, "--shape", TINY), self.out, "--force")
        self.assertEqual([p.name for p in self.out.iterdir()], ["precious"])
        check_refused(self, run("synth", self.out / "precious", "--shape", TINY), "found a file")

    def test_what_makes_no_model(self):
        check_refused(self, run("synth", self.out, "--shape", "v9"), "v2-lite", "v9")
        check_refused(self, run("synth", self.out, "--shape", "v3", "--experts", 12), "n_group", "12")
        self.assertFalse(self.out.exists())

    def test_wrong_usage(self):
        for flags in (["--format", "int5"], ["--group-size", "48"], ["--layers", "0"], ["--experts", "-1"]):
            with self.subTest(flags):
                self.assertEqual(run("synth", self.out, "--shape", TINY, *flags).returncode, 2)
        self.assertEqual(run("synth", self.out).returncode, 2)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main()
