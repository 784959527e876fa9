#!/usr/bin/env python3
"""What the build asks CMake for is what tools/setup.sh installs, and what the binary is linked to is in the container."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["HADAL_SOURCE_DIR"])
HADAL = os.environ["HADAL"]

# Debian's package for each find_package of CMake; None: comes with the compiler.
PACKAGES = {"Threads": None, "fmt": "libfmt-dev", "spdlog": "libspdlog-dev", "nlohmann_json": "nlohmann-json3-dev", "simdjson": "libsimdjson-dev",
            "CLI11": "libcli11-dev", "Boost": "libboost1.81-dev", "OpenSSL": "libssl-dev", "prometheus-cpp": "prometheus-cpp-dev",
            "CURL": "libcurl4-openssl-dev"}
EVERYWHERE = {"libc6", "libgcc-s1", "libstdc++6"}


def setup_list(name):
    text = (SOURCE / "tools" / "setup.sh").read_text().replace("\\\n", "")
    return set(re.search(rf'^{name}="([^"]*)"', text, re.MULTILINE).group(1).split())


class Packages(unittest.TestCase):
    def test_setup_installs_what_the_build_asks_for(self):
        wanted = set(re.findall(r"^find_package\(([\w-]+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE))
        for path in (SOURCE / "src").rglob("CMakeLists.txt"):
            wanted |= set(re.findall(r"^find_package\(([\w-]+)", path.read_text(), re.MULTILINE))
        self.assertIn("CURL", wanted)
        unknown = wanted - set(PACKAGES)
        self.assertEqual(unknown, set(), "say above which package that is")
        missing = {PACKAGES[name] for name in wanted if PACKAGES[name]} - setup_list("build")
        self.assertEqual(missing, set(), "add it to tools/setup.sh")

    @unittest.skipUnless(shutil.which("dpkg-query") and shutil.which("readelf"), "skipped: not a Debian with binutils")
    def test_the_container_has_the_libraries_of_the_binary(self):
        dynamic = subprocess.run(["readelf", "-d", HADAL], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"NEEDED.*\[(.+)\]", dynamic)
        self.assertTrue(names)
        dockerfile = (SOURCE / "deploy" / "Dockerfile").read_text().split("\nFROM ")[-1]
        for name in names:
            found = subprocess.run(["dpkg-query", "-S", f"*/{name}"], capture_output=True, text=True, check=False).stdout
            owners = {line.split(":")[0] for line in found.splitlines()}
            if not owners or owners & EVERYWHERE or re.match(r"lib(asan|ubsan|tsan)\b", name):
                continue
            with self.subTest(name):
                self.assertTrue(any(re.search(rf"(?<![\w.+-]){re.escape(owner)}(?![\w.+-])", dockerfile) for owner in owners),
                                f"{name} is in {sorted(owners)}, none of them in deploy/Dockerfile")


if __name__ == "__main__":
    unittest.main()
