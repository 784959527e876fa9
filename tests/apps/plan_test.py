"""hadal plan: what it says of models that are here and of those that are not."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from hadal_command import HADAL, SOURCE, check_refused, run
from hub_server import Hub

TINY = SOURCE / "models" / "tiny"


def plan(*args):
    process = run("plan", *args, "--json", timeout=120)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


class Plan(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_shape_by_all_its_names(self):
        for name, published in (("v2-lite", "bf16"), ("V2-Lite-Chat", "bf16"), ("deepseek-ai/DeepSeek-Coder-V2-Lite-Base", "bf16"), ("v3", "fp8"),
                                ("R1", "fp8"), ("deepseek-v3.1-terminus", "fp8"), ("V2.5", "bf16"), ("v3.2", "fp8")):
            with self.subTest(name):
                report = plan(name, "--memory", "2000GB")
                self.assertEqual(report["published"]["format"], published)
                self.assertEqual([one["format"] for one in report["formats"]], [published, "int8", "int4"])
                self.assertEqual(report["best"], published)
                for one in report["formats"]:
                    self.assertTrue(one["fits"])
                    self.assertEqual(one["memory_bytes"] - one["weight_bytes"] - one["cache_bytes"], 600_000_000)
                    for speed in one["forecast"]:
                        self.assertGreater(speed["tokens_per_s"], 0)
                        self.assertIn(speed["bound_by"], ("reading", "arithmetic", "attention"))

    def test_the_published_numbers(self):
        report = plan("V3", "--context", 4096)
        self.assertAlmostEqual(report["parameters_total"] / 671.0e9, 1, delta=0.01)
        self.assertAlmostEqual(report["parameters_active"] / 37.5e9, 1, delta=0.02)
        # Specification, 3.8: 576 numbers a layer and token, 61 layers, two bytes each.
        self.assertEqual(report["formats"][1]["cache_bytes_per_token"], 1216 * 61)  # words, and 9 scales
        self.assertEqual(report["formats"][1]["cache_bytes"], 1216 * 61 * 4096)
        self.assertEqual(report["commands"], [])  # nothing fits

    def test_weights_of_a_model_that_is_not_there_are_those_of_one_that_is(self):
        for form in ("bf16", "fp8", "int8", "int4"):
            with self.subTest(form):
                out = self.folder / form
                self.assertEqual(run("synth", out, "--shape", TINY / "config.json", "--format", form).returncode, 0)
                here = plan(out, "--context", 100)["formats"][0]
                self.assertEqual(here["format"], form)
                shape = self.folder / "shape"
                shape.mkdir(exist_ok=True)
                config = json.loads((out / "config.json").read_text())
                if form != "fp8":
                    config.pop("quantization_config", None)
                (shape / "config.json").write_text(json.dumps(config))
                imagined = plan(shape, "--context", 100)["formats"] if form in ("bf16", "fp8") else plan(TINY, "--context", 100)["formats"]
                found = {one["format"]: one["weight_bytes"] for one in imagined}
                self.assertEqual(found[form], here["weight_bytes"])

    def test_more_context_and_more_sequences_take_more_and_are_slower(self):
        small, deep, wide = (plan("v2-lite", "--memory", "100GB", *flags) for flags in ((), ("--context", 65536), ("--batch", 16)))
        for before, after in ((small, deep), (small, wide)):
            for one, other in zip(before["formats"], after["formats"]):
                self.assertGreater(other["cache_bytes"], one["cache_bytes"])
        depth = [{one["depth"]: one["median_s"] for one in deep["formats"][2]["forecast"] if one["what"] == "decode"}]
        self.assertGreater(depth[0][65535], 1.1 * depth[0][0])
        decode = [one for one in wide["formats"][2]["forecast"] if one["what"] == "decode"]
        self.assertEqual({one["batch"] for one in decode}, {16})

    def test_the_widest_format_that_fits_and_its_commands(self):
        for memory, best in (("64GB", "bf16"), ("24GB", "int8"), ("12GB", "int4"), ("4GB", None)):
            with self.subTest(memory):
                self.assertEqual(plan("v2-lite", "--memory", memory)["best"], best)
        commands = plan("V2-Lite-Chat", "--memory", "12GB")["commands"]
        self.assertEqual(commands, ["hadal pull deepseek-ai/DeepSeek-V2-Lite-Chat",
                                    "hadal quantize deepseek-ai/DeepSeek-V2-Lite-Chat DeepSeek-V2-Lite-Chat-int4 --format int4",
                                    "hadal chat DeepSeek-V2-Lite-Chat-int4"])
        commands = plan(TINY, "--batch", 4, "--context", 1024)["commands"]
        self.assertEqual(commands, [f"hadal serve {TINY} --max-sequences 4 --cache-tokens 4096"])

    def test_another_machine(self):
        here = plan("v3", "--memory", "800GB", "--read-gb-s", 100, "--integer-gop-s", 5000, "--float-gop-s", 2000)
        there = plan("v3", "--memory", "800GB", "--read-gb-s", 400, "--integer-gop-s", 5000, "--float-gop-s", 2000)
        self.assertEqual(there["machine"]["read_gb_s"], 400)
        self.assertEqual(there["machine"]["given"], ["read_gb_s", "integer_gop_s", "float32_gop_s"])
        speeds = [[one["tokens_per_s"] for one in report["formats"][2]["forecast"] if one["what"] == "decode"][0]
                  for report in (here, there)]
        self.assertGreater(speeds[1], 2 * speeds[0])
        self.assertLess(speeds[1], 4 * speeds[0])
        self.assertEqual(plan("v2-lite")["machine"]["given"], [])

    def test_the_table_for_people(self):
        process = run("plan", "v3", "--memory", "400GB", timeout=120)
        self.assertEqual(process.returncode, 0, process.stderr)
        for piece in ("671 B", "GB/s", "fp8", "int8", "int4", "hadal quantize"):
            self.assertIn(piece, process.stdout)

    def test_a_model_of_the_hub_of_which_only_the_config_is_read(self):
        hub = Hub({path.name: path.read_bytes() for path in TINY.iterdir() if path.is_file()})
        self.addCleanup(hub.close)
        hub.commit = "main"  # a revision, as `resolve` takes it too
        environment = {**os.environ, "HF_ENDPOINT": hub.address, "HADAL_HUB_DIR": str(self.folder / "store"), "HOME": str(self.folder)}
        process = subprocess.run([HADAL, "plan", "org/name", "--json"], capture_output=True, text=True, timeout=120, env=environment, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        report = json.loads(process.stdout)
        self.assertEqual(report["repo"], "org/name")
        self.assertIn("hadal pull org/name", report["commands"][0])
        self.assertEqual([path for path, _ in hub.requests], ["/org/name/resolve/main/config.json"])

    def test_what_is_no_model(self):
        check_refused(self, run("plan", "v9"), "v9", "v2-lite")
        (self.folder / "config.json").write_text('{"model_type": "llama"}')
        check_refused(self, run("plan", self.folder), "config.json")
        (self.folder / "config.json").unlink()
        check_refused(self, run("plan", self.folder), "config.json")

    def test_wrong_usage(self):
        for flags in (["--memory", "much"], ["--context", "0"], ["--batch", "-1"], ["--read-gb-s", "0"]):
            with self.subTest(flags):
                self.assertEqual(run("plan", "v2-lite", *flags).returncode, 2)


if __name__ == "__main__":
    unittest.main()
