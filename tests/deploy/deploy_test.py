#!/usr/bin/env python3
"""The files of deploy/ fit the program: metrics that exist, flags that exist, syntax that its readers take."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["HADAL_SOURCE_DIR"])
HADAL = os.environ["HADAL"]
DEPLOY = SOURCE / "deploy"


def engine_metrics():
    text = (SOURCE / "src/engine/metrics_text.cc").read_text()
    return set(re.findall(r'"(hadal_\w+)"', text))


class Dashboard(unittest.TestCase):
    def setUp(self):
        self.dashboard = json.loads((DEPLOY / "grafana_dashboard.json").read_text())

    def test_asks_only_for_metrics_that_exist(self):
        known = engine_metrics()
        self.assertIn("hadal_inter_token_seconds", known)
        asked = set()
        for panel in self.dashboard["panels"]:
            for target in panel["targets"]:
                asked |= set(re.findall(r"hadal_\w+", target["expr"]))
        asked = {re.sub(r"_bucket$", "", name) for name in asked}
        self.assertEqual(asked - known, set())
        self.assertGreater(len(asked), 15)

    def test_panels_do_not_overlap(self):
        taken = set()
        for panel in self.dashboard["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells
        self.assertEqual(len({panel["id"] for panel in self.dashboard["panels"]}), len(self.dashboard["panels"]))


class Files(unittest.TestCase):
    def test_promtool_takes_the_configuration(self):
        if shutil.which("promtool") is None:
            self.skipTest("skipped: promtool is not installed")
        found = subprocess.run(["promtool", "check", "config", DEPLOY / "prometheus.yml"], capture_output=True, text=True)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)

    def test_flags_of_the_samples_exist(self):
        text = subprocess.run([HADAL, "serve", "--help"], capture_output=True, text=True).stdout
        if "--port" not in text:
            self.skipTest("skipped: this build has no serve command")
        for name in ("hadal.service", "Dockerfile", "kubernetes.yaml"):
            content = (DEPLOY / name).read_text()
            for flag in set(re.findall(r"(?<![\w-])(--(?:host|port|api-key-file|cache-dir)[\w-]*)", content)):
                self.assertIn(flag, text, name)


if __name__ == "__main__":
    unittest.main()
