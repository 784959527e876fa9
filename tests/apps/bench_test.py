"""hadal bench: what it measures is consistent in itself; no test here depends on how fast anything is."""
import csv
import json
import pathlib
import tempfile
import unittest
import xml.dom.minidom

from hadal_command import check_refused, run


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def bench(self, *flags):
        process = run("bench", "--prefill", 24, "--batch", 1, 3, "--repetitions", 1, *flags)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process

    def test_json_has_every_case_with_its_bound(self):
        report = json.loads(self.bench("--json", "--threads", 2).stdout)
        self.assertEqual(report["machine"]["threads"], 2)
        self.assertGreater(report["machine"]["read_gb_s"], 0)
        self.assertGreater(report["machine"]["rates"]["integer_gop_s"], 0)
        inspected = json.loads(run("inspect", "--json").stdout)
        self.assertEqual(report["model"]["parameters_total"], inspected["parameters_total"])
        found = [(r["what"], r["batch"], r["depth"], r["tokens"]) for r in report["results"]]
        self.assertEqual(found, [("load", 0, 0, 0), ("prefill", 1, 0, 24), ("decode", 1, 0, 1), ("decode", 3, 0, 1),
                                 ("memory", 0, 0, 0)])
        for result in report["results"][1:4]:
            self.assertAlmostEqual(result["tokens_per_s"] * result["median_s"], result["batch"] * result["tokens"],
                                   places=6)
            self.assertAlmostEqual(result["share_of_bound"] * result["median_s"], result["bound_s"], places=12)
            self.assertGreater(result["bytes"], 0)
        one, three = report["results"][2], report["results"][3]
        # Three tokens meet more experts than one, but never three times the bytes of all weights.
        self.assertLess(one["bytes"], three["bytes"])
        self.assertLess(three["bytes"], 3 * one["bytes"])
        self.assertGreater(report["results"][4]["bytes"], report["model"]["weight_bytes"])

    def test_bytes_of_one_decoded_token_follow_from_the_config(self):
        report = json.loads(self.bench("--json").stdout)
        model = report["model"]
        # float32 rows of 128 + 64 values in six layers; four heads of 128 + 64 values instead.
        self.assertEqual(model["cache_bytes_per_token"], (128 + 64) * 6 * 4)
        self.assertAlmostEqual(model["cache_saving"], 4 * (128 + 64) / (128 + 64))
        bf16 = json.loads(self.bench("--json", "--cache-type", "bf16").stdout)
        self.assertEqual(bf16["model"]["cache_bytes_per_token"], (128 + 64) * 6 * 2)

    def test_speculation_tells_costs_speed_ups_and_the_modules_acceptance(self):
        texts = self.folder / "texts.json"
        texts.write_text(json.dumps(["Long ago, near the old mill, there lived a brown dog. The dog had a thorn."]))
        process = run("bench", "--spec", "--json", "--repetitions", 1, "--spec-text", texts)
        self.assertEqual(process.returncode, 0, process.stderr)
        report = json.loads(process.stdout)
        costs = {cost["tokens"]: cost for cost in report["verification"]}
        self.assertEqual(sorted(costs), list(range(1, 9)))
        self.assertEqual(costs[1]["relative"], 1)
        for entry in report["speedup"]:
            tokens = sum(entry["acceptance"] ** i for i in range(entry["drafts"] + 1))
            self.assertAlmostEqual(entry["speedup"] * costs[entry["drafts"] + 1]["relative"], tokens, places=9)
        for found in report["copy"]:
            # The steps at their costs: of full width as measured beside them, of fewer tokens as in the table.
            width = found["drafts"] + 1
            steps = dict(enumerate(found["steps_by_tokens"], start=1))
            time = sum(count * (found["relative_cost"] if tokens == width else costs[tokens]["relative"])
                       for tokens, count in steps.items())
            self.assertAlmostEqual(found["predicted"] * time, 47)
            self.assertEqual(found["tokens_per_step"], 47 / sum(steps.values()))
            self.assertEqual(sum(count for tokens, count in steps.items() if tokens > width), 0)
            if found["right_rate"] == 1:
                self.assertGreater(found["tokens_per_step"], found["drafts"])
        self.assertEqual([found["drafts"] for found in report["mtp_acceptance"]], [1, 2, 3])
        for found in report["mtp_acceptance"]:
            self.assertAlmostEqual(found["tokens_per_step"], 1 + sum(found["by_position"]))
            self.assertEqual(found["by_position"], sorted(found["by_position"], reverse=True))

    def test_operations_add_up_to_the_step(self):
        trace = self.folder / "trace.json"
        report = json.loads(self.bench("--json", "--profile", "--trace", trace).stdout)
        for result in report["results"][1:4]:
            operations = result["operations_s"]
            self.assertIn("attention", operations)
            self.assertIn("experts", operations)
            self.assertGreater(sum(operations.values()), 0)
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertTrue(all(event["ph"] == "X" and event["dur"] >= 0 for event in events))
        self.assertIn("experts", {event["name"] for event in events})

    def test_csv_page_and_comparison(self):
        table, page, before = self.folder / "b.csv", self.folder / "b.html", self.folder / "before.json"
        before.write_text(self.bench("--json").stdout)
        process = self.bench("--csv", table, "--html", page, "--compare", before)
        rows = list(csv.DictReader(table.open()))
        self.assertEqual([row["what"] for row in rows], ["load", "prefill", "decode", "decode", "memory"])
        self.assertIn("against", process.stdout)
        self.assertEqual(process.stdout.count("prefill"), 2)
        text = page.read_text()
        for svg in text.split("<svg")[1:]:
            xml.dom.minidom.parseString("<svg" + svg.split("</svg>")[0] + "</svg>")
        self.assertGreaterEqual(text.count("<svg"), 2)
        self.assertNotIn("<script", text)
        self.assertNotIn("http", text)

    def test_what_is_wrong_is_named(self):
        check_refused(self, run("bench", "--suite", "everything"),
                      "suite: expected quick, prefill, decode, batch, depth or full, found 'everything'")
        broken = self.folder / "broken.json"
        broken.write_text("{}")
        check_refused(self, run("bench", "--prefill", 4, "--compare", broken), broken,
                      "expected the JSON of an earlier run")


if __name__ == "__main__":
    unittest.main()
