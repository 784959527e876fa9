#!/usr/bin/env python3
"""Prometheus itself reads /metrics: its checker has no complaint, and a scraping server finds the values."""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "apps"))
from served import Server, chat  # noqa: E402


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--quiet")
        status, cls.reply = cls.server.post("/v1/chat/completions", chat("What is the capital of France?"))
        assert status == 200, cls.reply

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_promtool_has_no_complaint(self):
        if shutil.which("promtool") is None:
            self.skipTest("skipped: promtool is not installed")
        text = self.server.request("GET", "/metrics")[2]
        found = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
        self.assertEqual((found.returncode, found.stdout, found.stderr), (0, b"", b""))

    def test_a_scraping_server_finds_the_values(self):
        if shutil.which("prometheus") is None:
            self.skipTest("skipped: prometheus is not installed")
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "prometheus.yml"
            config.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: hadal\n    static_configs:\n"
                              f"      - targets: ['127.0.0.1:{self.server.port}']\n")
            port = free_port()
            process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                                        f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
            try:
                self.assertEqual(self.wait_for(port, 'up{job="hadal"}'), 1)
                self.assertEqual(self.wait_for(port, "hadal_generated_tokens_total"),
                                 self.reply["usage"]["completion_tokens"])
                self.assertEqual(self.wait_for(port, "hadal_time_to_first_token_seconds_count"), 1)
            finally:
                process.terminate()
                process.wait(timeout=60)

    def wait_for(self, port, query):
        """The first value that the query has."""
        address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(address, timeout=10) as reply:
                    result = json.load(reply)["data"]["result"]
                if result:
                    return float(result[0]["value"][1])
            except OSError:
                pass  # not listening yet
            time.sleep(0.3)
        self.fail(f"no value of {query}")


if __name__ == "__main__":
    unittest.main()
