"""hadal inspect, as scripts and people meet it."""
import json
import pathlib
import resource
import shutil
import struct
import tempfile
import unittest

from hadal_command import GOLDEN, SOURCE, check_refused, run

FORMATS = GOLDEN / "formats"
CONTAINERS = json.loads((FORMATS / "container_files.json").read_text())


def peak_kib():
    """The most memory that any finished child held."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def read_header(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return header


class Containers(unittest.TestCase):
    """C122 to C126: what container_files.json says of each file; and no file asks for memory that it does not fill."""

    @classmethod
    def setUpClass(cls):
        run("inspect", FORMATS / "safetensors" / "ok_plain.safetensors", "--json")
        cls.usual_kib = peak_kib()

    def check(self, path, expect):
        process = run("inspect", path, "--json")
        self.assertLess(peak_kib() - self.usual_kib, 64 << 10)
        if expect == "reject":
            check_refused(self, process, path)
            return None
        self.assertEqual(process.returncode, 0, process.stderr)
        return json.loads(process.stdout)

    def test_safetensors_files_open_or_are_refused_as_listed(self):
        for item in CONTAINERS["safetensors"]:
            path = FORMATS / "safetensors" / item["file"]
            with self.subTest(item["file"], why=item["why"]):
                report = self.check(path, item["expect"])
                if report is None:
                    continue
                header = read_header(path)
                found = {tensor["name"]: tensor for tensor in report["tensors"]}
                self.assertEqual(set(found), set(header))
                for name, expected in header.items():
                    self.assertEqual(found[name]["dtype"], expected["dtype"])
                    self.assertEqual(found[name]["shape"], expected["shape"])
                    begin, end = expected["data_offsets"]
                    self.assertEqual(found[name]["bytes"], end - begin)
                    self.assertEqual(found[name]["file"], item["file"])

    def test_shard_folders_open_or_are_refused_as_listed(self):
        for item in CONTAINERS["shards"]:
            with self.subTest(item["dir"], why=item["why"]):
                report = self.check(FORMATS / "shards" / item["dir"], item["expect"])
                if report is not None:
                    self.assertEqual([tensor["name"] for tensor in report["tensors"]], ["a", "b"])
                    self.assertIsNone(report["model_type"])

    def test_a_folder_without_weights_is_refused(self):
        check_refused(self, run("inspect", FORMATS / "shards" / "empty_dir"), "no weights")

    def test_a_missing_shard_is_named(self):
        check_refused(self, run("inspect", FORMATS / "shards" / "missing_shard"), "model-00002-of-00002.safetensors",
                      "found 1")

    def test_gguf_files_open_or_are_refused_as_listed(self):
        """C123 and C124."""
        for item in CONTAINERS["gguf"]:
            with self.subTest(item["file"], why=item["why"]):
                report = self.check(FORMATS / "gguf" / item["file"], item["expect"])
                if report is not None:
                    self.assertEqual([(tensor["dtype"], tensor["ne"], tensor["shape"], tensor["bytes"])
                                      for tensor in report["tensors"]], [("F32", [4, 2], [2, 4], 32)])
                    self.assertEqual(report["weight_bytes"], 32)

    def test_no_gguf_file_is_a_model(self):
        for item in CONTAINERS["gguf"]:
            with self.subTest(item["file"]):
                path = FORMATS / "gguf" / item["file"]
                check_refused(self, run("run", path, "-p", "a"), path)


class Model(unittest.TestCase):
    def test_the_bundled_model_is_the_default(self):
        process = run("inspect", "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        report = json.loads(process.stdout)
        header = read_header(SOURCE / "models" / "tiny" / "model.safetensors")
        sizes = {name: end - begin for name, (begin, end) in
                 ((name, tensor["data_offsets"]) for name, tensor in header.items())}
        counts = {}
        for name, tensor in header.items():
            counts[name] = 1
            for size in tensor["shape"]:
                counts[name] *= size
        mtp = sum(count for name, count in counts.items() if ".layers.6." in name)
        idle = sum(count for name, count in counts.items()
                   if ".experts." in name and ".layers.6." not in name) * (16 - 4) // 16
        self.assertEqual(report["model_type"], "deepseek_v3")
        self.assertEqual(report["parameters_mtp"], mtp)
        self.assertEqual(report["parameters_total"], sum(counts.values()) - mtp)
        self.assertEqual(report["parameters_active"], sum(counts.values()) - mtp - idle)
        self.assertEqual(report["weight_bytes"], sum(sizes.values()))
        self.assertEqual(sum(report["bytes_by_dtype"].values()), sum(sizes.values()))
        self.assertEqual(sum(report["bytes_by_part"].values()), sum(sizes.values()))
        self.assertEqual(report["cache_bytes_per_token"], 6 * (128 + 64) * 4)
        self.assertEqual(report["chat_layout"], "v3.1")
        self.assertTrue(report["memory"]["fits"])
        self.assertNotIn("tensors", report)

    def test_tensors_are_listed_when_asked_for(self):
        report = json.loads(run("inspect", SOURCE / "models" / "tiny", "--tensors", "--json").stdout)
        header = read_header(SOURCE / "models" / "tiny" / "model.safetensors")
        self.assertEqual({tensor["name"] for tensor in report["tensors"]}, set(header))

    def test_the_table_says_what_it_is(self):
        text = run("inspect").stdout
        for word in ["deepseek_v3", "parameters", "experts", "cache", "layout v3.1", "memory"]:
            self.assertIn(word, text)

    def test_a_checked_model_without_nan_passes(self):
        self.assertEqual(run("inspect", "--check").returncode, 0)


class BrokenModel(unittest.TestCase):
    """A copy of the bundled model, bent."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ["config.json", "model.safetensors"]:
            shutil.copy(SOURCE / "models" / "tiny" / name, self.folder / name)

    def edit_config(self, **keys):
        config = json.loads((self.folder / "config.json").read_text())
        config.update(keys)
        (self.folder / "config.json").write_text(json.dumps(config))

    def test_all_misshapen_tensors_are_listed(self):
        self.edit_config(vocab_size=4097)
        check_refused(self, run("inspect", self.folder), '"model.embed_tokens.weight": expected [4097, 256]',
                      '"lm_head.weight"', "2 of another shape")

    def test_all_missing_tensors_are_listed(self):
        self.edit_config(n_routed_experts=20, n_group=5)
        process = run("inspect", self.folder)
        check_refused(self, process, "72 missing")
        for expert in range(16, 20):
            self.assertIn(f'"model.layers.3.mlp.experts.{expert}.down_proj.weight"', process.stderr)

    def test_a_bad_config_names_the_key(self):
        self.edit_config(num_experts_per_tok=99)
        check_refused(self, run("inspect", self.folder), self.folder / "config.json", "num_experts_per_tok", "found 99")

    def test_another_architecture_is_refused(self):
        self.edit_config(model_type="llama")
        check_refused(self, run("inspect", self.folder), "model_type", '"llama"')

    def test_nan_in_an_expert_is_found_when_asked_for(self):
        """C086."""
        path = self.folder / "model.safetensors"
        name = "model.layers.2.mlp.experts.3.up_proj.weight"
        begin = read_header(path)[name]["data_offsets"][0]
        data = bytearray(path.read_bytes())
        at = 8 + struct.unpack("<Q", data[:8])[0] + begin + 2 * 5
        data[at:at + 2] = b"\xC0\x7F"  # a BF16 NaN
        path.write_bytes(data)
        self.assertEqual(run("inspect", self.folder).returncode, 0)
        check_refused(self, run("inspect", self.folder, "--check"), f'"{name}" at element 5', "in 1 tensor:")

    def test_a_model_without_tokenizer_still_opens(self):
        report = json.loads(run("inspect", self.folder, "--json").stdout)
        self.assertIsNone(report["chat_layout"])

    def test_unused_tensors_are_told(self):
        self.edit_config(num_nextn_predict_layers=0)
        report = json.loads(run("inspect", self.folder, "--json").stdout)
        self.assertFalse(report["has_mtp"])
        self.assertGreater(report["unused_tensors"], 0)


class Usage(unittest.TestCase):
    def test_nothing_at_the_path(self):
        check_refused(self, run("inspect", "/no/such/model"), "/no/such/model")

    def test_an_unknown_flag_is_wrong_usage(self):
        self.assertEqual(run("inspect", "--no-such-flag").returncode, 2)

    def test_help(self):
        process = run("inspect", "--help")
        self.assertEqual(process.returncode, 0)
        self.assertIn("--tensors", process.stdout)


if __name__ == "__main__":
    unittest.main()
