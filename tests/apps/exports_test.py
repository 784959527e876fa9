"""Models that other programs packed: GGUF, compressed-tensors, GPTQ and AWQ, through every command that meets them."""
import json
import pathlib
import shutil
import struct
import tempfile
import unittest

from hadal_command import GOLDEN, check_refused, run
from logits_test import BOUND, read_floats, worst_row

MODELS = GOLDEN / "models"
GGUF = sorted(p.name for p in MODELS.glob("gguf-*"))
PACKED = sorted(p.name for p in MODELS.iterdir() if p.name.split("-")[0] in ("ct", "gptq", "awq"))


def expected(name):
    return json.loads((MODELS / name / "expected.json").read_text())


def lines_of(key, values):
    return "".join(json.dumps({key: value}) + "\n" for value in values)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def check_logits(self, model, name, sequence="chunk"):
        ids, out = self.folder / "ids.json", self.folder / "out.safetensors"
        ids.write_text(json.dumps(expected(name)["sequences"][sequence]))
        out.unlink(missing_ok=True)
        process = run("logits", model, "--tokens", ids, "--out", out)
        self.assertEqual(process.returncode, 0, process.stderr)
        found, want = read_floats(out), read_floats(MODELS / name / "expected.safetensors")
        for kind in found:
            self.assertLessEqual(worst_row(found[kind], want[f"{sequence}.{kind}"], 1), BOUND, (name, kind))


class Greedy(Folder):
    def test_continuations_are_exact_by_default(self):
        num_checked = 0
        for name in GGUF + PACKED:
            answers = expected(name)
            for sequence, ids in answers["greedy"].items():
                if not ids or sequence == "long":
                    continue
                tokens = self.folder / "ids.json"
                tokens.write_text(json.dumps(answers["sequences"][sequence]))
                process = run("run", MODELS / name / "model", "--tokens", tokens, "--max-tokens", len(ids),
                              "--ignore-eos", "--temperature", 0, "--json")
                self.assertEqual(process.returncode, 0, process.stderr)
                self.assertEqual(json.loads(process.stdout)["ids"], ids, (name, sequence))
                num_checked += 1
        self.assertGreater(num_checked, 20)


class Text(unittest.TestCase):
    """The tokenizer and the template of a GGUF file."""

    def test_texts_and_their_ids(self):
        for name in GGUF:
            with self.subTest(name):
                answers = expected(name)["tokenizer"]
                for flags, entries in ((), answers["texts"]), (("--specials",), answers["literal"]):
                    process = run("tokenize", MODELS / name / "model", *flags, "--json",
                                  stdin=lines_of("text", [entry["text"] for entry in entries]))
                    self.assertEqual(process.returncode, 0, process.stderr)
                    found = [json.loads(line)["ids"] for line in process.stdout.splitlines()]
                    self.assertEqual(found, [entry["ids"] for entry in entries])
                back = run("tokenize", MODELS / name / "model", "--decode", "--json",
                           stdin=lines_of("ids", [entry["ids"] for entry in answers["texts"]]))
                self.assertEqual([json.loads(line)["text"] for line in back.stdout.splitlines()],
                                 [entry["text"] for entry in answers["texts"]])

    def test_chats(self):
        for name in GGUF:
            with self.subTest(name):
                chat = expected(name)["tokenizer"]["chat"]
                request = {"messages": chat["messages"],
                           "options": {"add_generation_prompt": chat["add_generation_prompt"]}}
                process = run("render", MODELS / name / "model", "--json", stdin=json.dumps(request) + "\n")
                self.assertEqual(process.returncode, 0, process.stderr)
                found = json.loads(process.stdout)
                self.assertEqual(found["prompt"], chat["prompt"])
                self.assertEqual(found["ids"], chat["ids"])


class RoundedInputs(Folder):
    """What models of more than 64 MB get: inputs of blocks rounded to bytes."""

    def logits(self, name, *flags):
        ids, out = self.folder / "ids.json", self.folder / "out.safetensors"
        ids.write_text(json.dumps(expected(name)["sequences"]["chunk"]))
        process = run("logits", MODELS / name / "model", "--tokens", ids, "--out", out, *flags)
        self.assertEqual(process.returncode, 0, process.stderr)
        return out.read_bytes()

    def test_blocks_turned_at_load_give_the_bits_of_blocks_as_they_lie(self):
        rounded = "--activations", "int8"
        for name in GGUF:
            turned = self.logits(name, *rounded, "--weights", "copied")
            self.assertEqual(turned, self.logits(name, *rounded, "--weights", "mapped"), name)
            for flags in ("--chunk", "7", "--threads", "1"), ("--kernels", "reference"):
                self.assertEqual(turned, self.logits(name, *rounded, "--weights", "copied", *flags), (name, flags))
            self.assertNotEqual(turned, self.logits(name, "--activations", "float32"), name)


class Inspect(Folder):
    def report(self, name):
        process = run("inspect", MODELS / name / "model", "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        return json.loads(process.stdout)

    def test_says_what_a_gguf_file_is(self):
        for name in GGUF:
            report = self.report(name)
            self.assertEqual(report["container"], "gguf")
            self.assertEqual(report["unused_tensors"], 0, name)
            self.assertEqual("attn_kv_b" in report["mla_form"], name.endswith("legacy"))
            self.assertEqual(report["has_mtp"], "mtp" in name or "v32" in name)
            self.assertEqual(report["model_type"], {"lite": "deepseek_v2", "v2": "deepseek_v2", "v3": "deepseek_v3",
                                                    "v32": "deepseek_v32"}[name.split("-")[1]])

    def test_says_what_was_supplied(self):
        notes = " ".join(self.report("gguf-lite-legacy")["supplied"])
        for key in "expert_gating_func", "expert_group_count", "yarn_beta_fast":
            self.assertIn(key, notes)
        self.assertEqual(self.report("gguf-v3-mla")["supplied"], [])

    def test_says_how_an_export_is_packed(self):
        for name in PACKED:
            report = self.report(name)
            self.assertEqual(report["packing"], {"ct": "compressed-tensors", "gptq": "GPTQ", "awq": "AWQ"}[name.split("-")[0]])
            self.assertEqual(report["unused_tensors"], 0, name)
        self.assertIn("activations", " ".join(self.report("ct-int8-channel")["warnings"]))

    def test_an_ignore_list_that_disagrees_is_reported_and_the_tensors_win(self):
        model = self.folder / "model"
        shutil.copytree(MODELS / "ct-int4-asym-g128" / "model", model)
        config = json.loads((model / "config.json").read_text())
        config["quantization_config"]["ignore"] += ["model.layers.0.mlp.up_proj", "re:.*self_attn.*"]
        (model / "config.json").write_text(json.dumps(config))
        report = json.loads(run("inspect", model, "--json").stdout)
        self.assertIn("not packed, but the tensors are", " ".join(report["warnings"]))
        self.check_logits(model, "ct-int4-asym-g128")

    def test_a_table_for_people(self):
        process = run("inspect", MODELS / "gguf-lite-legacy" / "model")
        for text in "gguf", "attn_kv_b", "Q4_K", "supplied", "per weight":
            self.assertIn(text, process.stdout)

    def test_check_finds_nan_in_a_block(self):
        model = self.folder / "model.gguf"
        data = bytearray((MODELS / "gguf-v2-groups" / "model" / "gguf-v2-groups.gguf").read_bytes())
        data[-24:-22] = struct.pack("<H", 0x7E00)  # the scale of the last block, of Q5_1
        model.write_bytes(data)
        process = run("inspect", model, "--check")
        self.assertEqual(process.returncode, 1, process.stdout)
        self.assertIn("NaN or infinity", process.stderr)


class Files(Folder):
    def test_a_part_that_is_missing_is_named(self):
        source = MODELS / "gguf-v3-mtp-two-files" / "model"
        first, second = sorted(source.iterdir())
        shutil.copy(first, self.folder)
        check_refused(self, run("inspect", self.folder, "--json"), second.name)
        shutil.copy(second, self.folder)
        self.assertEqual(run("inspect", self.folder / first.name).returncode, 0)
        ids = self.folder / "ids.json"
        ids.write_text("[1]")
        check_refused(self, run("run", self.folder / second.name, "--tokens", ids), "expected the first one")

    def test_a_folder_with_two_models_asks_which(self):
        for name in "gguf-v2-groups", "gguf-lite-mla":
            shutil.copy(MODELS / name / "model" / f"{name}.gguf", self.folder)
        check_refused(self, run("inspect", self.folder), "expected one")

    def test_a_type_that_cannot_be_read_is_named(self):
        data = (MODELS / "gguf-v2-groups" / "model" / "gguf-v2-groups.gguf").read_bytes()
        name = b"blk.1.ffn_down_exps.weight"
        at = data.index(name) + len(name) + 4 + 3 * 8
        self.assertEqual(struct.unpack_from("<I", data, at)[0], 8)
        path = self.folder / "model.gguf"
        path.write_bytes(data[:at] + struct.pack("<I", 18) + data[at + 4:])
        check_refused(self, run("inspect", path), "IQ3_XXS")

    def test_an_old_export_says_how_it_is_packed_in_a_file_beside_the_config(self):
        model = self.folder / "model"
        shutil.copytree(MODELS / "gptq-g128" / "model", model)
        config = json.loads((model / "config.json").read_text())
        del config["quantization_config"]
        (model / "config.json").write_text(json.dumps(config))
        self.check_logits(model, "gptq-g128")

    def test_packed_tensors_that_do_not_fit_together_are_named(self):
        model = self.folder / "model"
        shutil.copytree(MODELS / "gptq-g128" / "model", model)
        config = json.loads((model / "config.json").read_text())
        config["quantization_config"]["group_size"] = 64
        (model / "config.json").write_text(json.dumps(config))
        check_refused(self, run("inspect", model), "scales")


class Convert(Folder):
    def convert(self, name, *flags):
        out = self.folder / "out"
        process = run("convert", MODELS / name / "model", out, "--force", "--json", *flags)
        return out, process

    def test_exports_keep_every_value(self):
        for name in PACKED:
            if name in ("gptq-g128-act-order", "ct-int8-channel"):  # columns out of order; the code -128
                continue
            with self.subTest(name):
                out, process = self.convert(name)
                self.assertEqual(process.returncode, 0, process.stderr)
                report = json.loads(process.stdout)
                self.assertEqual(report["changed"], {})
                ids, logits = self.folder / "ids.json", self.folder / "out.safetensors"
                ids.write_text(json.dumps(expected(name)["sequences"]["chunk"]))
                for flags in ["--activations", "float32", "--cache-type", "f32"],:
                    process = run("logits", out, "--tokens", ids, "--out", logits, *flags)
                    self.assertEqual(process.returncode, 0, process.stderr)
                    found, want = read_floats(logits), read_floats(MODELS / name / "expected.safetensors")
                    self.assertLessEqual(worst_row(found["logits"], want["chunk.logits"], 1), BOUND)

    def test_what_cannot_be_kept_is_refused_unless_rounding_is_allowed(self):
        for name in "gguf-lite-legacy", "gptq-g128-act-order", "ct-int8-channel":
            with self.subTest(name):
                _, process = self.convert(name)
                self.assertEqual(process.returncode, 1)
                self.assertIn("--requantize", process.stderr)
                out, process = self.convert(name, "--requantize")
                self.assertEqual(process.returncode, 0, process.stderr)
                self.assertNotEqual(json.loads(process.stdout)["changed"], {})
                ids = self.folder / "ids.json"
                ids.write_text("[5, 6, 7]")
                process = run("run", out, "--tokens", ids, "--max-tokens", 3, "--ignore-eos", "--json")
                self.assertEqual(process.returncode, 0, process.stderr)

    def test_the_tokenizer_of_a_gguf_file_comes_along(self):
        for name in "gguf-lite-legacy", "gguf-v32":
            with self.subTest(name):
                out, process = self.convert(name, "--requantize")
                self.assertEqual(process.returncode, 0, process.stderr)
                answers = expected(name)["tokenizer"]
                process = run("tokenize", out, "--json",
                              stdin=lines_of("text", [entry["text"] for entry in answers["texts"]]))
                self.assertEqual([json.loads(line)["ids"] for line in process.stdout.splitlines()],
                                 [entry["ids"] for entry in answers["texts"]])
                chat = answers["chat"]
                process = run("render", out, "--json", stdin=json.dumps({"messages": chat["messages"]}) + "\n")
                self.assertEqual(json.loads(process.stdout)["ids"], chat["ids"])

    def test_other_sources_are_refused(self):
        process = run("convert", MODELS / "v3-f32" / "model", self.folder / "out")
        check_refused(self, process, "hadal quantize")
        process = run("quantize", MODELS / "gguf-v2-groups" / "model", self.folder / "out2")
        check_refused(self, process, "hadal convert")


if __name__ == "__main__":
    unittest.main()
