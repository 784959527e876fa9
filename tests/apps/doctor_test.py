"""hadal doctor, as scripts and people meet it."""
import json
import os
import unittest

from hadal_command import run


class Doctor(unittest.TestCase):
    def test_json_has_what_scripts_rely_on(self):
        process = run("doctor", "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(len(process.stdout.splitlines()), 1)
        report = json.loads(process.stdout)
        self.assertTrue(report["cpu"])
        self.assertGreaterEqual(report["cores"], 1)
        self.assertLessEqual(report["cores"], os.cpu_count())
        self.assertGreater(report["memory_bytes"], 0)
        self.assertGreaterEqual(report["memory_bytes"], report["available_memory_bytes"])
        # Slower than any disk, or faster than any cache, would be a fault of the measurement.
        self.assertGreater(report["read_bandwidth_gb_s"], 0.1)
        self.assertLess(report["read_bandwidth_gb_s"], 10_000)
        self.assertGreaterEqual(report["read_bandwidth_gb_s"], report["read_bandwidth_one_core_gb_s"])
        self.assertIsInstance(report["advice"], list)

    def test_every_usable_kernel_set_passes_its_self_test(self):
        kernels = json.loads(run("doctor", "--json").stdout)["kernels"]
        self.assertEqual(kernels[0]["name"], "reference")
        self.assertTrue(kernels[0]["usable"])
        for kernel_set in kernels:
            if kernel_set["usable"]:
                self.assertIs(kernel_set["self_test"], True, kernel_set)
                self.assertGreater(kernel_set["gop_s"], 0)
            else:
                self.assertIsNone(kernel_set["self_test"])

    def test_the_table_names_the_same_things(self):
        process = run("doctor")
        self.assertEqual(process.returncode, 0, process.stderr)
        for word in ["processor", "reference", "self-test passed", "memory", "huge pages", "reading", "advice"]:
            self.assertIn(word, process.stdout)

    def test_wrong_usage_is_code_2(self):
        self.assertEqual(run("doctor", "--nonsense").returncode, 2)
        self.assertEqual(run("doctor", "some model").returncode, 2)


if __name__ == "__main__":
    unittest.main()
