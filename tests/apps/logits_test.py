"""hadal logits against the logits of the reference, and what it says to bad input."""
import array
import json
import pathlib
import struct
import sys
import tempfile
import unittest

from hadal_command import GOLDEN, SOURCE, check_refused, run

MODELS = GOLDEN / "models"
BOUND = 1e-4  # of the largest |expected logit| of the row


def read_floats(path):
    """name -> (rows, columns, array of floats), of a file of F32 tensors with two dimensions."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", entry
        first, last = entry["data_offsets"]
        values = array.array("f", data[begin + first:begin + last])
        if sys.byteorder == "big":
            values.byteswap()
        tensors[name] = (*entry["shape"], values)
    return tensors


def worst_row(found, expected, step):
    """The largest difference of a row over its largest |expected|; row i of expected is row i * step of found."""
    worst = 0.0
    rows, cols, wanted = expected
    for i in range(rows):
        want = wanted[i * cols:(i + 1) * cols]
        got = found[2][i * step * cols:(i * step + 1) * cols]
        difference = max(abs(a - b) for a, b in zip(want, got))
        if difference != difference:
            return float("inf")
        worst = max(worst, difference / max(map(abs, want)))
    return worst


class Golden(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def logits(self, model, tokens, *flags):
        ids, out = self.folder / "ids.json", self.folder / "out.safetensors"
        ids.write_text(json.dumps(tokens))
        out.unlink(missing_ok=True)
        process = run("logits", MODELS / model / "model", "--tokens", ids, "--out", out, *flags)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process, read_floats(out)

    def check(self, model, sequence, *flags):
        tokens = json.loads((MODELS / model / "expected.json").read_text())["sequences"][sequence]
        expected = read_floats(MODELS / model / "expected.safetensors")
        _, found = self.logits(model, tokens, *flags)
        step = 4 if sequence == "long" else 1
        kinds = {name.split(".")[1] for name in expected}
        self.assertEqual(set(found), kinds)
        self.assertEqual(found["logits"][:2], (len(tokens), expected[f"{sequence}.logits"][1]))
        for kind in kinds:
            if kind == "mtp_logits":
                self.assertEqual(found[kind][0], len(tokens) - 1)
            self.assertLessEqual(worst_row(found[kind], expected[f"{sequence}.{kind}"], step), BOUND, kind)

    def test_every_model_by_default(self):
        for folder in sorted(MODELS.iterdir()):
            if folder.is_dir():
                with self.subTest(folder.name):
                    self.check(folder.name, "chunk")

    def test_every_form_chunk_and_number_of_threads(self):
        for form in "absorbed", "expanded", "auto":
            for chunk in 1, 7, 64:
                for threads in 1, 4:
                    with self.subTest(form=form, chunk=chunk, threads=threads):
                        self.check("v32-fp8-ue8m0", "chunk", "--form", form, "--chunk", chunk, "--threads", threads)

    def test_a_long_sequence_past_the_extended_range(self):
        self.check("v3-f32", "long")

    def test_one_token(self):
        _, found = self.logits("v3-fp8", [161])
        self.assertEqual(found["logits"][:2], (1, 320))
        self.assertEqual(found["mtp_logits"][:2], (0, 320))

    def test_reference_kernels_by_name(self):
        self.check("v2-group-f16", "five", "--kernels", "reference")

    def test_report_as_json(self):
        process, _ = self.logits("v3-fp8", [1, 2, 3], "--json")
        report = json.loads(process.stdout)
        self.assertEqual(report["tokens"], 3)
        self.assertEqual(report["vocab_size"], 320)


class BadInput(unittest.TestCase):
    MODEL = MODELS / "v2-lite-bf16" / "model"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out.safetensors"

    def run_on(self, text, *flags, model=None):
        ids = self.folder / "ids.json"
        ids.write_text(text)
        return run("logits", model or self.MODEL, "--tokens", ids, "--out", self.out, *flags)

    def check_refused(self, process, *pieces):
        check_refused(self, process, *pieces)
        self.assertEqual(list(self.folder.glob("out*")), [], "something was written")

    def test_ids_outside_the_vocabulary(self):
        self.check_refused(self.run_on("[1, 320, 2]"), "319", "320")
        self.check_refused(self.run_on("[1, -1]"), "ids.json", "-1")
        self.check_refused(self.run_on("[99999999999999999999]"), "ids.json")

    def test_what_is_not_a_list_of_ids(self):
        for text in '{"ids": [1]}', "7", "null", '"1"', "[1, [2]]", '["1"]', "[1.5]", "[null]", "[true]":
            with self.subTest(text):
                self.check_refused(self.run_on(text), "ids.json")

    def test_what_is_not_json(self):
        for text in "", "[1, 2", "[1,,2]", "1 2 3", "\0", "[" * 100000:
            with self.subTest(text[:10]):
                self.check_refused(self.run_on(text), "ids.json")

    def test_no_tokens(self):
        self.check_refused(self.run_on("[]"), "ids.json")

    def test_more_tokens_than_the_context_has(self):
        self.check_refused(self.run_on(json.dumps([1] * 1025)), "1024", "1025")

    def test_missing_files(self):
        missing = self.folder / "none.json"
        self.check_refused(run("logits", self.MODEL, "--tokens", missing, "--out", self.out), missing)
        self.check_refused(self.run_on("[1]", model=self.folder / "no-model"), "no-model")

    def test_a_place_that_cannot_be_written(self):
        ids = self.folder / "ids.json"
        ids.write_text("[1]")
        out = self.folder / "none" / "out.safetensors"
        self.check_refused(run("logits", self.MODEL, "--tokens", ids, "--out", out), out)

    def test_unknown_kernels(self):
        self.check_refused(self.run_on("[1]", "--kernels", "abacus"), "abacus")

    def test_flags_of_names_say_which_there_are(self):
        process = run("logits", SOURCE / "models" / "tiny", "--tokens", "x", "--out", "y", "--form", "folded")
        self.assertEqual(process.returncode, 2)
        self.assertIn("--form: expected absorbed|auto|expanded, found folded", process.stderr)
        self.assertIn("NAME:absorbed|auto|expanded", run("logits", "--help").stdout)

    def test_wrong_usage(self):
        ids = self.folder / "ids.json"
        ids.write_text("[1]")
        for flags in (["--form", "folded"], ["--chunk", "0"], ["--chunk", "-1"], ["--chunk", "x"],
                      ["--threads", "-1"], ["--no-such-flag"], ["another", "argument"]):
            with self.subTest(flags):
                process = self.run_on("[1]", *flags)
                self.assertEqual(process.returncode, 2, process.stderr)
                self.assertEqual(process.stdout, "")
        self.assertEqual(run("logits", self.MODEL, "--out", self.out).returncode, 2)
        self.assertEqual(run("logits", self.MODEL, "--tokens", ids).returncode, 2)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main()
