"""hadal tokenize, as scripts and people meet it."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from hadal_command import GOLDEN, HADAL, SOURCE, check_refused, run

TINY = SOURCE / "models" / "tiny"


def json_lines(text):
    return [json.loads(line) for line in text.split("\n") if line]


def lines_of(key, values):
    return "".join(json.dumps({key: value}) + "\n" for value in values)


class V3(unittest.TestCase):
    """The oracle lines, with what they need of the V3 vocabulary."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(GOLDEN / "text" / "tokenizer_v3_reduced.json", self.folder / "tokenizer.json")
        self.oracle = json_lines((GOLDEN / "text" / "tokenizer_v3.jsonl").read_text())

    def test_gives_the_reference_ids(self):
        process = run("tokenize", self.folder, "--specials", "--json", stdin=lines_of("text", [o["text"] for o in self.oracle]))
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual([line["ids"] for line in json_lines(process.stdout)], [o["ids"] for o in self.oracle])

    def test_gives_the_texts_back(self):
        process = run("tokenize", self.folder, "--decode", "--json", stdin=lines_of("ids", [o["ids"] for o in self.oracle]))
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual([line["text"] for line in json_lines(process.stdout)], [o["text"] for o in self.oracle])

    def test_control_tokens_in_a_text_are_text(self):
        """C005."""
        vectors = json.loads((GOLDEN / "text" / "tok_markup_vs_content.json").read_text())["vectors"]
        process = run("tokenize", self.folder, "--json", stdin=lines_of("text", [v["text"] for v in vectors]))
        self.assertEqual([line["ids"] for line in json_lines(process.stdout)],
                         [v["as_message_content_v3"] for v in vectors])

    def test_a_file_of_the_folder_names_the_model_too(self):
        process = run("tokenize", self.folder / "tokenizer.json", "--json", stdin=lines_of("text", ["Hello!"]))
        self.assertEqual(json_lines(process.stdout), [{"ids": [19923, 3]}])


class Lines(unittest.TestCase):
    def test_the_bundled_model_is_the_default(self):
        text = lines_of("text", ["Hello wörld", "", "a\nb"])
        process = run("tokenize", "--json", stdin=text)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(process.stdout, run("tokenize", TINY, "--json", stdin=text).stdout)
        self.assertEqual(json_lines(process.stdout)[1], {"ids": []})

    def test_each_line_is_answered_before_the_next_is_sent(self):
        with subprocess.Popen([HADAL, "tokenize", TINY, "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            for text in ["one", "two"]:
                process.stdin.write(json.dumps({"text": text}) + "\n")
                process.stdin.flush()
                self.assertIn("ids", json.loads(process.stdout.readline()))
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), 0)

    def test_a_bad_line_is_named_after_the_good_ones(self):
        for bad, piece in [("nonsense", "line 2"), ("[]", "line 2"), ('{"text": 5}', "text: expected a string, found 5"),
                           ("{}", "text: expected a value, found nothing"), ('{"text": "\\ud800"}', "line 2")]:
            with self.subTest(bad):
                process = run("tokenize", TINY, "--json", stdin='{"text": "ok"}\n' + bad + "\n")
                self.assertEqual(process.returncode, 1)
                self.assertEqual(len(json_lines(process.stdout)), 1)
                self.assertEqual(len(process.stderr.splitlines()), 1, process.stderr)
                self.assertTrue(process.stderr.startswith("hadal: error: standard input: line 2: "), process.stderr)
                self.assertIn(piece, process.stderr)

    def test_bad_ids_are_named(self):
        for bad, piece in [("5", "ids: expected a list of token ids"), ('["x"]', 'ids[0]: expected an integer'),
                           ("[1, -1]", "ids[1]"), ("[1.5]", "ids[0]"), ("[4294967296]", "ids[0]")]:
            with self.subTest(bad):
                check_refused(self, run("tokenize", TINY, "--decode", stdin='{"ids": %s}\n' % bad), "line 1", piece)

    def test_ids_without_a_token_give_nothing(self):
        """C010."""
        process = run("tokenize", TINY, "--decode", "--json", stdin='{"ids": [4096, 129279, 2147483647]}\n')
        self.assertEqual(json_lines(process.stdout), [{"text": ""}])

    def test_half_a_character_becomes_a_replacement(self):
        ids = json_lines(run("tokenize", TINY, "--json", stdin=lines_of("text", ["🦖"])).stdout)[0]["ids"]
        process = run("tokenize", TINY, "--decode", "--json", stdin=lines_of("ids", [ids[:-1]]))
        self.assertEqual(json_lines(process.stdout), [{"text": "\ufffd"}])

    def test_long_runs_give_their_text_back(self):
        """C004."""
        texts = ["Z" * 131072, "A" * 43000, " " * 100000, "\n" * 50000]
        ids = [line["ids"] for line in json_lines(run("tokenize", TINY, "--json", stdin=lines_of("text", texts)).stdout)]
        process = run("tokenize", TINY, "--decode", "--json", stdin=lines_of("ids", ids))
        self.assertEqual([line["text"] for line in json_lines(process.stdout)], texts)

    def test_the_table_shows_each_piece(self):
        text = run("tokenize", TINY, stdin=lines_of("text", ["Hello"])).stdout
        self.assertIn('"H"', text)
        self.assertIn("tokens", text)

    def test_decoding_without_json_prints_the_text(self):
        ids = json_lines(run("tokenize", TINY, "--json", stdin=lines_of("text", ["Hello wörld"])).stdout)[0]["ids"]
        self.assertEqual(run("tokenize", TINY, "--decode", stdin=lines_of("ids", [ids])).stdout, "Hello wörld\n")


class Usage(unittest.TestCase):
    def test_nothing_at_the_path(self):
        check_refused(self, run("tokenize", "/no/such/model"), "/no/such/model")

    def test_a_folder_without_tokenizer(self):
        with tempfile.TemporaryDirectory() as folder:
            check_refused(self, run("tokenize", folder), "tokenizer.json")

    def test_a_broken_tokenizer_names_file_and_key(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            data = json.loads((TINY / "tokenizer.json").read_text())
            data["pre_tokenizer"]["pretokenizers"][2]["pattern"]["Regex"] = "\\w+"
            path.write_text(json.dumps(data))
            check_refused(self, run("tokenize", folder), path, "pre_tokenizer", "\\\\w+")
            path.write_text("{")
            check_refused(self, run("tokenize", folder), path, "JSON")

    def test_an_unknown_flag_is_wrong_usage(self):
        self.assertEqual(run("tokenize", "--no-such-flag").returncode, 2)

    def test_help(self):
        process = run("tokenize", "--help")
        self.assertEqual(process.returncode, 0)
        self.assertIn("--specials", process.stdout)


if __name__ == "__main__":
    unittest.main()
