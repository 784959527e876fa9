"""hadal pull, list, remove, and models found by name, against a hub on this machine that misbehaves."""
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import hub_server
from hadal_command import HADAL, SOURCE, check_refused
from hub_server import Hub

TINY = SOURCE / "models" / "tiny"


def content(seed, size):
    return random.Random(seed).randbytes(size)


FILES = {"config.json": b'{"model_type": "x"}\n', "README.md": b"", "weights/a.bin": content(1, 300_000), "weights/b.bin": content(2, 70_001),
         "LICENSE": b"words", "also/LICENSE": b"words", "odd name [1]+%.txt": b"odd"}


class PullCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = self.folder / "store"
        self.hub = self.open_hub(FILES)

    def open_hub(self, files, **kinds):
        hub = Hub(files, **kinds)
        self.addCleanup(hub.close)
        return hub

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING", "XDG_", "SSL_", "CURL_", "REQUESTS_"))
                and "proxy" not in name.lower()}
        return {**kept, "HF_ENDPOINT": self.hub.address, "HADAL_HUB_DIR": str(self.store), "HOME": str(self.folder), **more}

    def hadal(self, *args, timeout=60, **environment):
        return subprocess.run([HADAL, *map(str, args)], capture_output=True, text=True, timeout=timeout, env=self.environment(**environment), check=False)

    def pull(self, *flags, name="org/name", **environment):
        return self.hadal("pull", name, "--retry-wait", "0.01", *flags, **environment)

    def check_pulled(self, folder=None, files=None):
        """The folder holds these files, and one of ours."""
        folder = folder or self.store / "org" / "name"
        found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        found.pop(".hadal_pull.json")
        self.assertEqual(sorted(found), sorted(FILES if files is None else files))
        for path, expected in (FILES if files is None else files).items():
            self.assertEqual(hashlib.sha256(found[path]).hexdigest(), hashlib.sha256(expected).hexdigest(), path)
        self.assertFalse((folder.parent / f".{folder.name}.pull").exists())

    def check_nothing_there(self, folder=None):
        self.assertFalse((folder or self.store / "org" / "name").exists())

    def good(self, process):
        self.assertEqual(process.returncode, 0, process.stderr)
        return process


class Pull(PullCase):
    def test_every_file_comes_whole(self):
        report = json.loads(self.good(self.pull("--json")).stdout)
        self.check_pulled()
        size = sum(map(len, FILES.values()))
        self.assertEqual(report["files"], len(FILES))
        self.assertEqual((report["bytes"], report["downloaded_bytes"]), (size, size))
        self.assertEqual(report["commit"], hub_server.COMMIT)
        self.assertEqual(report["path"], str(self.store / "org" / "name"))

    def test_a_second_pull_asks_for_the_listing_only(self):
        self.good(self.pull())
        self.hub.requests.clear()
        report = json.loads(self.good(self.pull("--json")).stdout)
        self.assertTrue(report["up_to_date"])
        self.assertEqual([path for path, _ in self.hub.requests if "/resolve/" in path], [])
        self.check_pulled()

    def test_a_new_commit_replaces_what_changed_and_drops_what_went(self):
        self.good(self.pull())
        self.hub.commit = "b" * 40
        self.hub.files["config.json"] = b'{"model_type": "y"}\n'
        self.hub.files["weights/c.bin"] = content(3, 5000)
        del self.hub.files["LICENSE"]
        self.hub.requests.clear()
        self.good(self.pull())
        self.check_pulled(files=self.hub.files)
        asked = sorted(path.rsplit("/", 1)[1] for path, _ in self.hub.requests if "/resolve/" in path)
        self.assertEqual(asked, ["c.bin", "config.json"])

    def test_a_file_that_somebody_changed_is_not_taken_over(self):
        self.good(self.pull())
        changed = self.store / "org" / "name" / "weights" / "b.bin"
        changed.write_bytes(b"x" * len(FILES["weights/b.bin"]))
        self.hub.files["new.txt"] = b"new"
        self.good(self.pull())
        self.check_pulled(files=self.hub.files)

    def test_include_takes_what_matches_and_adds_to_what_is_there(self):
        self.good(self.pull("--include", "*.json"))
        self.check_pulled(files={"config.json": FILES["config.json"]})
        self.good(self.pull("--include", "weights/b*", "--include", "odd*"))
        self.check_pulled(files={path: FILES[path] for path in ("config.json", "weights/b.bin", "odd name [1]+%.txt")})
        check_refused(self, self.pull("--include", "*.gguf"), "org/name", "--include", len(FILES))

    def test_to_names_another_folder(self):
        target = self.folder / "there" / "model"
        self.good(self.pull("--to", f"{target}/"))
        self.check_pulled(target)
        self.assertFalse(self.store.exists())

    def test_a_folder_of_somebody_else_is_left_alone(self):
        target = self.folder / "precious"
        target.mkdir()
        (target / "letter").write_text("dear")
        check_refused(self, self.pull("--to", target), target, "found other files")
        self.assertEqual([path.name for path in target.iterdir()], ["letter"])

    def test_a_revision_lies_beside_the_main_one(self):
        self.good(self.pull(name="org/name@refs/pr/1"))
        self.check_pulled(self.store / "org" / "name@refs%2Fpr%2F1")
        self.check_nothing_there()
        names = [model["name"] for model in json.loads(self.hadal("list", "--json").stdout)["models"]]
        self.assertEqual(names, ["org/name@refs/pr/1"])

    def test_large_files_come_from_where_the_hub_sends_to(self):
        self.hub.cdn = self.open_hub(FILES)
        self.good(self.pull())
        self.check_pulled()
        self.assertEqual(len(self.hub.cdn.requests), 2)


    def test_through_a_proxy(self):
        proxy = self.hub.address
        self.hub.page = 100  # links to further pages name the proxy itself
        self.good(self.pull(HF_ENDPOINT="http://hub.invalid", http_proxy=proxy))
        self.check_pulled()
        self.assertTrue(all(path.startswith("http://hub.invalid/") for path, _ in self.hub.requests))


class Faults(PullCase):
    def check_survives(self, path, *faults, flags=()):
        self.hub.faults[path] = list(faults)
        self.good(self.pull(*flags))
        self.assertEqual(self.hub.faults[path], [], "a fault was never met")
        self.check_pulled()

    def test_cut_connections_continue_where_they_ended(self):
        self.check_survives("weights/a.bin", *[hub_server.cut(0.3)] * 12)
        ranges = [headers["Range"] for path, headers in self.hub.requests if path.endswith("a.bin") and "Range" in headers]
        begins = [int(text[len("bytes="):-1]) for text in ranges]
        self.assertEqual(len(begins), 12)
        self.assertEqual(begins, sorted(set(begins)))

    def test_cut_connections_without_a_range(self):
        self.check_survives("weights/a.bin", hub_server.cut(0.6), hub_server.whole)

    def test_codes_that_pass(self):
        self.check_survives("weights/a.bin", *map(hub_server.code, (429, 500, 502, 503, 504)))
        shutil.rmtree(self.store)
        self.check_survives("api", *map(hub_server.code, (429, 500, 503)))

    def test_the_wait_that_the_hub_asks_for(self):
        start = time.monotonic()
        self.check_survives("config.json", hub_server.code(429, {"Retry-After": "1"}))
        self.assertGreaterEqual(time.monotonic() - start, 1)

    def test_lengths_and_ranges_that_are_lies_and_pass(self):
        for fault in (hub_server.wrong_length(-7), hub_server.wrong_length(7), hub_server.unannounced(-7), hub_server.unannounced(7),
                      hub_server.wrong_range):
            with self.subTest(fault):
                self.check_survives("weights/a.bin", hub_server.cut(0.5), fault)
                shutil.rmtree(self.store)

    def test_content_that_is_wrong_once(self):
        self.check_survives("weights/a.bin", hub_server.wrong_content)
        shutil.rmtree(self.store)
        self.check_survives("config.json", hub_server.wrong_content)

    def test_a_stalled_connection_is_given_up(self):
        start = time.monotonic()
        self.check_survives("weights/a.bin", hub_server.stall(30), flags=["--stall", "1"])
        self.assertLess(time.monotonic() - start, 20)

    def check_fails(self, path, fault, *pieces, flags=()):
        self.hub.faults[path] = [fault] * 100
        check_refused(self, self.pull("--retries", 3, *flags), *pieces)
        self.hub.faults.clear()
        self.check_nothing_there()

    def test_wrong_content_is_never_a_file(self):
        self.check_fails("config.json", hub_server.wrong_content, "config.json", "git hash", flags=["--include", "*.json"])
        self.check_fails("weights/a.bin", hub_server.wrong_content, "weights/a.bin", "sha-256", hashlib.sha256(FILES["weights/a.bin"]).hexdigest())

    def test_wrong_lengths_are_never_a_file(self):
        for fault in (hub_server.wrong_length(-1), hub_server.wrong_length(1), hub_server.unannounced(1), hub_server.unannounced(-1)):
            with self.subTest(fault):
                self.check_fails("weights/b.bin", fault, "weights/b.bin", "70001")

    def test_codes_that_stay(self):
        for number, piece in ((401, "HF_TOKEN"), (403, "HF_TOKEN"), (404, "404"), (410, "410"), (429, "429"), (500, "500"), (418, "418")):
            with self.subTest(number):
                self.check_fails("LICENSE", hub_server.code(number), "LICENSE", number, piece)
                self.check_fails("api", hub_server.code(number), "org/name", number, piece)

    def test_a_model_that_does_not_exist(self):
        check_refused(self, self.pull(name="org/other"), "org/other", "404", "Repository not found")
        check_refused(self, self.pull(name="org/name@nowhere"), "nowhere", "404")

    def test_a_hub_that_is_not_there(self):
        self.hub.close()
        check_refused(self, self.pull("--retries", 2), self.hub.address)

    def test_answers_that_are_no_listing(self):
        for body in (b"<html>log in</html>", b"[]", b"{}", b'{"sha": "main"}', b'{"sha": 7}', b"", b'{"sha": "' + b"A" * 40 + b'"}'):
            with self.subTest(body):
                self.check_fails("api", lambda request, _, body=body: Hub.send(request, 200, body), "org/name")

    def test_redirects_without_end(self):
        self.check_fails("LICENSE", hub_server.code(302, {"Location": f"{self.hub.address}/org/name/resolve/{self.hub.commit}/LICENSE"}), "redirects")

    def test_redirects_to_other_protocols(self):
        for target in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x", "http://user:pass@127.0.0.1/", "http://", ""):
            with self.subTest(target):
                self.check_fails("LICENSE", hub_server.code(302, {"Location": target}), "LICENSE")

    def test_a_disk_that_is_too_small(self):
        self.hub.listing = [{"type": "file", "path": "big", "size": 1 << 49, "oid": "0" * 40}]
        check_refused(self, self.pull(), "free space", 1 << 49)
        self.check_nothing_there()


class HostileNames(PullCase):
    def test_names_cannot_leave_the_folder(self):
        for path in ("../evil", "a/../../evil", "/etc/evil", "a//b", "a/", "", ".", "..", "a/./b", "a\\..\\evil", "evil\n", "nul\0", "a" * 300, "a/" * 600 + "a"):
            with self.subTest(path):
                self.hub.listing = [{"type": "file", "path": path, "size": 4, "oid": "0" * 40}]
                check_refused(self, self.pull(), "org/name", "file name")
                self.check_nothing_there()
        self.assertEqual([p for p in self.folder.rglob("*evil*")], [])

    def test_entries_that_contradict_each_other(self):
        def entry(path, **more):
            return {"type": "file", "path": path, "size": 5, "oid": hub_server.git_hash(b"words"), **more}
        for listing, piece in (([entry("a"), entry("a")], "once"), ([entry("a"), entry("a/b")], "folder"), ([entry("a", size=-1)], "size"),
                               ([entry("a", size=1 << 62)], "size"), ([entry("a", oid="zz")], "oid"), ([entry("a", lfs=7)], "lfs"),
                               ([entry("a", lfs={"oid": "../../x", "size": 5})], "oid"), ([7], "entry"), ([entry(7)], "path"), ([], "found none")):
            with self.subTest(piece):
                self.hub.listing = listing
                check_refused(self, self.pull(), "org/name", piece)
                self.check_nothing_there()

    def test_a_file_with_the_name_of_ours_is_left_out(self):
        self.hub.files[".hadal_pull.json"] = b"{}"
        self.good(self.pull())
        self.check_pulled()

    def test_names_of_models(self):
        for name in ("name", "org/", "/name", "org/name/more", "../name", "org/..", ".org/name", "org/name@", "org/name@../x", "org/na me", "org/-x"):
            with self.subTest(name):
                check_refused(self, self.hadal("pull", "--", name), "model name")
        self.assertFalse(self.store.exists())


class Tokens(PullCase):
    def setUp(self):
        super().setUp()
        self.hub.token = "hf_secret"

    def test_it_is_found_in_the_usual_places(self):
        home = self.folder / "home"
        (home / "huggingface").mkdir(parents=True)
        (home / "huggingface" / "token").write_text("hf_secret\n")
        (home / "token").write_text("hf_secret")
        for environment in ({"HF_TOKEN": "hf_secret"}, {"HUGGING_FACE_HUB_TOKEN": " hf_secret\n"}, {"HF_TOKEN_PATH": str(home / "token")},
                            {"HF_HOME": str(home)}, {"XDG_CACHE_HOME": str(home)}):
            with self.subTest(environment):
                self.good(self.pull(**environment))
                shutil.rmtree(self.store)

    def test_without_it_the_error_says_so_and_the_token_never_shows(self):
        check_refused(self, self.pull(), "401", "HF_TOKEN", "restricted")
        refused = self.pull(HF_TOKEN="hf_wrong_secret")
        check_refused(self, refused, "401", "no access")
        self.assertNotIn("hf_wrong_secret", refused.stderr)
        refused = self.pull(HF_TOKEN="hf_se\ncret: x")
        check_refused(self, refused, "token")
        self.assertNotIn("cret", refused.stderr)

    def test_another_host_never_gets_it(self):
        self.hub.cdn = self.open_hub(FILES)
        self.good(self.pull(HF_TOKEN="hf_secret"))
        self.check_pulled()
        self.assertEqual(len(self.hub.cdn.requests), 2)
        for _, headers in self.hub.cdn.requests:
            self.assertNotIn("Authorization", headers)

    def test_another_host_never_gets_it_from_the_listing_either(self):
        other = self.open_hub(FILES)
        self.hub.faults["api"] = [lambda *_: False, hub_server.code(307, {"Location": f"{other.address}/api/models/org/name/tree/{self.hub.commit}"})]
        self.pull(HF_TOKEN="hf_secret")
        self.assertTrue(other.requests)
        for _, headers in other.requests:
            self.assertNotIn("Authorization", headers)


class Encrypted(PullCase):
    def setUp(self):
        super().setUp()
        self.tls = self.folder / "certificate.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-out", self.tls[0], "-keyout", self.tls[1]], check=True, capture_output=True)
        self.plain = self.hub
        self.hub = self.open_hub(FILES, tls=self.tls)

    def test_a_hub_whose_certificate_is_trusted(self):
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
            self.good(self.pull(**{name: str(self.tls[0])}))
            self.check_pulled()
            shutil.rmtree(self.store)

    def test_any_other_certificate_is_refused_at_once(self):
        start = time.monotonic()
        check_refused(self, self.hadal("pull", "org/name", "--retry-wait", "30"), self.hub.address, "certificate")
        self.assertLess(time.monotonic() - start, 20)
        self.check_nothing_there()

    def test_a_redirect_to_a_plain_address_is_refused(self):
        self.hub.cdn = self.plain
        self.plain.requests.clear()
        check_refused(self, self.pull(SSL_CERT_FILE=str(self.tls[0])), "https")
        self.assertEqual(self.plain.requests, [])
        self.check_nothing_there()


class Interrupted(PullCase):
    def start(self, *flags):
        return subprocess.Popen([HADAL, "pull", "org/name", "--retry-wait", "0.01", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env=self.environment())

    def test_thirty_kills_at_random_moments(self):
        chance = random.Random(7)
        self.hub.faults["*"] = [hub_server.slow(9000, 0.02) for _ in range(1000)]
        ended_early = 0
        for _ in range(30):
            process = self.start()
            time.sleep(chance.uniform(0.02, 0.25))
            ended_early += process.poll() is None
            process.kill()
            process.wait()
            target = self.store / "org" / "name"
            if target.exists():  # it was done: then all of it is there
                self.check_pulled()
                shutil.rmtree(self.store)
        self.assertGreater(ended_early, 15)
        self.hub.faults.clear()
        self.good(self.pull())
        self.check_pulled()

    def test_what_was_there_is_not_asked_for_again(self):
        self.hub.faults["weights/a.bin"] = [hub_server.cut(0.5), hub_server.stall(60)]
        process = self.start("--connections", "1")
        part = None
        for _ in range(500):
            time.sleep(0.02)
            part = next(iter(self.store.glob("org/.name.pull/files/*.part")), None)
            if part and part.stat().st_size >= 150_000:
                break
        process.kill()
        process.wait()
        self.hub.requests.clear()
        self.hub.faults.clear()
        report = json.loads(self.good(self.pull("--json")).stdout)
        self.check_pulled()
        self.assertLessEqual(report["downloaded_bytes"], report["bytes"] - 150_000)

    def test_a_part_that_was_damaged_is_downloaded_again(self):
        self.hub.faults["weights/a.bin"] = [hub_server.cut(0.5), hub_server.code(404)]
        self.assertEqual(self.pull().returncode, 1)
        part = max(self.store.glob("org/.name.pull/files/*.part"), key=lambda path: path.stat().st_size)
        part.write_bytes(b"x" * part.stat().st_size)
        self.good(self.pull())
        self.check_pulled()

    def test_an_interrupt_ends_it_and_the_next_continues(self):
        self.hub.faults["weights/a.bin"] = [hub_server.slow(9000, 0.1)]
        process = self.start()
        for _ in range(500):
            time.sleep(0.02)
            if any(part.stat().st_size for part in self.store.glob("org/.name.pull/files/*.part")):
                break
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 130)
        self.check_nothing_there()
        self.good(self.pull())
        self.check_pulled()

    def test_a_disk_that_takes_no_more(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        process = subprocess.run([HADAL, "pull", "org/name"], capture_output=True, text=True, timeout=60, env=self.environment(), check=False,
                                 preexec_fn=limit, restore_signals=False)  # Python ignores the signal of a file too large, and so shall the child
        check_refused(self, process, "write", "File too large")
        self.check_nothing_there()
        self.good(self.pull())
        self.check_pulled()

    def test_two_at_a_time_are_refused(self):
        self.hub.faults["weights/a.bin"] = [hub_server.slow(9000, 0.1)]
        first = self.start()
        for _ in range(200):
            time.sleep(0.02)
            if list(self.store.glob("org/.name.pull/files/*.part")):
                break
        check_refused(self, self.pull(), self.store / "org" / "name", "another process")
        check_refused(self, self.hadal("remove", "org/name"), "another process")
        self.assertEqual(first.wait(timeout=60), 0)
        self.check_pulled()

    def test_an_update_that_is_killed_leaves_the_old_model_or_the_new(self):
        chance = random.Random(3)
        self.good(self.pull())
        old = dict(FILES)
        for round_number in range(10):
            new = {**old, "config.json": b"%d" % round_number, "weights/b.bin": content(round_number, 60_000)}
            self.hub.files, self.hub.commit = new, f"{round_number:040x}"
            process = self.start()
            time.sleep(chance.uniform(0.0, 0.1))
            process.kill()
            process.wait()
            config = (self.store / "org" / "name" / "config.json").read_bytes()
            expected = new if config == new["config.json"] else old
            found = {path: (self.store / "org" / "name" / path).read_bytes() for path in expected}
            self.assertEqual(found, expected)
            self.good(self.pull())
            self.check_pulled(files=new)
            old = new


class ByName(PullCase):
    def setUp(self):
        super().setUp()
        self.hub.files = {path.name: path.read_bytes() for path in TINY.iterdir() if path.is_file()}

    def test_a_pulled_model_runs_by_its_name(self):
        check_refused(self, self.hadal("run", "org/name", "-p", "x"), "org/name", "hadal pull")
        self.good(self.pull())
        report = json.loads(self.good(self.hadal("inspect", "org/name", "--json")).stdout)
        self.assertEqual(report["model_type"], "deepseek_v3")
        answers = [self.good(self.hadal("run", model, "-p", "Hello", "--max-tokens", 5, "--temperature", 0, "--json")).stdout for model in ("org/name", TINY)]
        self.assertEqual(json.loads(answers[0])["ids"], json.loads(answers[1])["ids"])
        process = subprocess.run([HADAL, "tokenize", "org/name", "--json"], input='{"text": "a"}\n', capture_output=True, text=True, timeout=60,
                                 env=self.environment(), check=True)
        self.assertIn("ids", json.loads(process.stdout))

    def test_a_file_inside_a_pulled_model(self):
        self.good(self.pull())
        self.good(self.hadal("inspect", "org/name/model.safetensors", "--json"))
        check_refused(self, self.hadal("inspect", "org/name/../name/config.json", "--json"), "org/name")

    def test_an_unfinished_pull_is_no_model(self):
        self.hub.faults["model.safetensors"] = [hub_server.code(404)]
        self.assertEqual(self.pull().returncode, 1)
        check_refused(self, self.hadal("run", "org/name", "-p", "x"), "org/name", "hadal pull")
        (model,) = json.loads(self.hadal("list", "--json").stdout)["models"]
        self.assertTrue(model["unfinished"])
        self.good(self.hadal("remove", "org/name"))
        self.assertFalse((self.store / "org").exists())

    def test_list_and_remove(self):
        self.assertIn("hadal pull", self.good(self.hadal("list")).stdout)
        self.good(self.pull())
        self.good(self.pull(name="org/name@v1"))
        models = json.loads(self.good(self.hadal("list", "--json")).stdout)["models"]
        self.assertEqual([model["name"] for model in models], ["org/name", "org/name@v1"])
        self.assertEqual(models[0]["bytes"], sum(map(len, self.hub.files.values())))
        self.assertIn("org/name@v1", self.hadal("list").stdout)
        report = json.loads(self.good(self.hadal("remove", "org/name", "--json")).stdout)
        self.assertGreaterEqual(report["bytes"], models[0]["bytes"])
        self.check_nothing_there()
        check_refused(self, self.hadal("remove", "org/name"), "org/name", "found none")
        (model,) = json.loads(self.hadal("list", "--json").stdout)["models"]
        self.assertEqual(model["name"], "org/name@v1")


class Usage(PullCase):
    def test_wrong_usage(self):
        for args in (["pull"], ["remove"], ["pull", "org/name", "--connections", "0"], ["pull", "org/name", "--retries", "x"], ["list", "extra"]):
            with self.subTest(args):
                self.assertEqual(self.hadal(*args).returncode, 2)

    def test_endpoints_that_are_none(self):
        for endpoint in ("ftp://127.0.0.1", "nonsense://", "http://u:p@127.0.0.1", "http://127.0.0.1?x=1"):
            with self.subTest(endpoint):
                check_refused(self, self.pull(HF_ENDPOINT=endpoint), "HF_ENDPOINT")


if __name__ == "__main__":
    unittest.main()
