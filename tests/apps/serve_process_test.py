#!/usr/bin/env python3
"""hadal serve as a process: its flags, signals, log, TLS, and what it leaves behind."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from hadal_command import HADAL, check_refused, run
from served import Server, chat, events

FRANCE, PARIS = "What is the capital of France?", "The capital of France is Paris."
LONG = chat("Tell me a story about a cat.", ignore_eos=True, max_tokens=1500)


def anonymous_kib(pid):
    """Memory of the process' own, swapped or not."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "VmSwap")))


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Flags(unittest.TestCase):
    # C121: port in use: unclear failure.
    def test_a_port_that_is_taken_is_named_before_the_model_is_read(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            check_refused(self, run("serve", "--port", port), f"port {port}")

    def test_faults_are_named(self):
        check_refused(self, run("serve", "/nowhere", "--port", "0"), "/nowhere")
        check_refused(self, run("serve", "--port", "0", "--api-key-file", "/nowhere.keys"), "/nowhere.keys")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "config.json").write_text("{")
            check_refused(self, run("serve", folder, "--port", "0"), "config.json")
        self.assertEqual(run("serve", "--port", "70000").returncode, 2)

    def test_checks_names_where_some_were_given(self):
        with Server("--model-name", "a", "--model-name", "b") as server:
            self.assertEqual([model["id"] for model in server.get("/v1/models")[1]["data"]], ["a", "b"])
            self.assertEqual(server.post("/v1/chat/completions", chat(FRANCE, model="b"))[1]["model"], "b")
            for fields in ({"model": "c"}, {}):
                status, reply = server.post("/v1/chat/completions", chat(FRANCE, **fields))
                self.assertEqual((status, reply["error"]["param"]), (404, "model"))

    def test_keys_and_log_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "keys"
            path.write_text("team-a very-secret\n")
            server = Server("--api-key-file", path)
            self.assertEqual(server.post("/v1/chat/completions", chat(FRANCE))[0], 401)
            self.assertEqual(server.get("/health")[0], 200)
            status, headers, _ = server.request("POST", "/v1/chat/completions", chat(FRANCE, user="me"),
                                                {"Authorization": "Bearer very-secret"})
            self.assertEqual(status, 200)
            self.assertEqual(server.close(), 0)
            lines = [line for line in server.log if line["path"] == "/v1/chat/completions"]
            self.assertEqual([line["status"] for line in lines], [401, 200])
            self.assertEqual(lines[1]["request_id"], headers["x-request-id"])
            self.assertEqual((lines[1]["key"], lines[1]["user"], lines[1]["finish_reason"]), ("team-a", "me", "stop"))
            self.assertGreater(lines[1]["completion_tokens"], 3)
            self.assertNotIn("very-secret", server.errors)

    def test_speaks_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = self.make_certificate(folder)
            with Server("--tls-cert", cert, "--tls-key", key, "--quiet") as server:
                self.assertTrue(server.url.startswith("https://"))
                context = ssl.create_default_context(cafile=cert)
                connection = http.client.HTTPSConnection(server.host, server.port, context=context, timeout=30)
                for _ in range(2):
                    connection.request("POST", "/v1/chat/completions", json.dumps(chat(FRANCE)))
                    reply = json.loads(connection.getresponse().read())
                    self.assertEqual(reply["choices"][0]["message"]["content"], PARIS)
                # A client that leaves is seen through TLS, too.
                connection.request("POST", "/v1/chat/completions", json.dumps({**LONG, "stream": True}))
                connection.getresponse().readline()
                connection.close()
                deadline = time.monotonic() + 10
                found = ""
                while time.monotonic() < deadline and 'reason="cancelled"} 1' not in found:
                    connection = http.client.HTTPSConnection(server.host, server.port, context=context, timeout=30)
                    connection.request("GET", "/metrics")
                    found = connection.getresponse().read().decode()
                    connection.close()
                self.assertIn('hadal_sequences_ended_total{reason="cancelled"} 1', found)

    def test_a_request_that_comes_with_the_end_of_the_handshake_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = self.make_certificate(folder)
            with Server("--tls-cert", cert, "--tls-key", key, "--quiet") as server:
                context = ssl.create_default_context(cafile=cert)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                tls = context.wrap_bio(incoming, outgoing, server_hostname=server.host)
                with socket.create_connection((server.host, server.port), timeout=10) as connection:
                    while True:
                        try:
                            tls.do_handshake()
                            break
                        except ssl.SSLWantReadError:
                            connection.sendall(outgoing.read())
                            incoming.write(connection.recv(65536))
                    tls.write(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    connection.sendall(outgoing.read())  # the handshake's last message and the request, at once
                    answer = b""
                    while b"\r\n" not in answer:
                        incoming.write(connection.recv(65536))
                        try:
                            answer += tls.read(65536)
                        except ssl.SSLWantReadError:
                            pass
                self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer)

    def make_certificate(self, folder):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not there to make a certificate")
        cert, key = (str(pathlib.Path(folder) / name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-keyout", key, "-out", cert, "-days", "1", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        return cert, key


class Signals(unittest.TestCase):
    # C132: SIGTERM did not end the server while a stream was open.
    def test_sigterm_ends_an_idle_server(self):
        server = Server("--quiet")
        idle = server.connect()
        idle.request("GET", "/health")
        idle.getresponse().read()
        start = time.monotonic()
        self.assertEqual(server.close(), 0)
        self.assertLess(time.monotonic() - start, 5)

    def test_sigterm_ends_a_server_with_an_open_stream(self):
        server = Server("--quiet", "--drain-seconds", "1")
        stream = server.connect()
        stream.request("POST", "/v1/chat/completions", json.dumps({**LONG, "stream": True}))
        reply = stream.getresponse()
        reply.readline()
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.assertEqual(server.get("/health"), (503, {"status": "draining"}))
        self.assertEqual(server.post("/v1/chat/completions", chat(FRANCE))[0], 503)
        last = list(events(reply.read().decode()))[-1]
        self.assertTrue(last[1] == "[DONE]" or "shutting down" in last[1], last)
        self.assertEqual(server.process.wait(timeout=10), 0)
        self.assertLess(time.monotonic() - start, 5)
        server.close()

    def test_a_second_signal_ends_at_once(self):
        server = Server("--quiet", "--drain-seconds", "60")
        stream = server.connect()
        stream.request("POST", "/v1/chat/completions", json.dumps({**LONG, "n": 8, "stream": True}))
        stream.getresponse().readline()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        start = time.monotonic()
        self.assertEqual(server.close(), 130)
        self.assertLess(time.monotonic() - start, 2)


class Endurance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--quiet")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.close() == 0, cls.server.errors

    def ended(self, reason):
        text = self.server.request("GET", "/metrics")[2].decode()
        return int(text.split(f'hadal_sequences_ended_total{{reason="{reason}"}} ')[1].split()[0])

    # C108, C110: work went on after the client left; a stop hit the next request.
    def test_clients_that_leave_cost_nothing(self):
        before = self.ended("cancelled")
        body = json.dumps({**LONG, "stream": True}).encode()
        head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n").encode()
        for i in range(60):
            client = socket.create_connection((self.server.host, self.server.port))
            client.sendall(head + body)
            if i % 3:
                client.recv(200)
            client.close()
            if i % 10 == 0:
                self.assertEqual(self.server.ask(FRANCE), PARIS)
        deadline = time.monotonic() + 20
        while self.ended("cancelled") < before + 60 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(self.ended("cancelled"), before + 60)
        # The look at /metrics itself has a descriptor for a moment.
        start = self.server.open_files()
        self.assertLess(start, 40)

    # C111: abort of one stream while another prefills: server never answered again.
    def test_health_answers_while_prompts_are_read_and_streams_are_cut(self):
        slowest, stop = [0.0], threading.Event()

        def watch():
            while not stop.is_set():
                start = time.monotonic()
                self.assertEqual(self.server.get("/health")[0], 200)
                slowest[0] = max(slowest[0], time.monotonic() - start)
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        for i in range(8):
            reader = threading.Thread(target=self.server.post, args=("/v1/completions", {
                "prompt": [50 + (i * 7 + j) % 1000 for j in range(1200)], "max_tokens": 1}))
            reader.start()
            stream = self.server.connect()
            stream.request("POST", "/v1/chat/completions", json.dumps({**LONG, "stream": True}))
            stream.getresponse().readline()
            stream.close()
            reader.join()
        stop.set()
        watcher.join()
        self.assertLess(slowest[0], 1.0)

    # C129: memory grew with each request.
    def test_memory_is_level(self):
        def round_of(number):
            for i in range(40):
                self.server.post("/v1/chat/completions", chat(f"What is {number} + {i}?", max_tokens=4))
        for warm in range(3):
            round_of(1000 * warm)
        before = anonymous_kib(self.server.pid)
        for number in range(4):
            round_of(7777 * (number + 1))
        self.assertLess(anonymous_kib(self.server.pid) - before, 4096)

    # C118: very long prompt: length error ended the process.
    def test_a_very_long_body_is_refused_in_bounded_memory(self):
        before = anonymous_kib(self.server.pid)
        connection = self.server.connect()
        connection.putrequest("POST", "/v1/completions")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        piece = b"10000\r\n" + b"\\n" * 32768 + b"\r\n"
        try:
            connection.send(b'd\r\n{"prompt": "\\\r\n')
            for _ in range(1024):
                connection.send(piece)
        except OSError:
            pass  # refused on the way
        try:
            self.assertEqual(connection.getresponse().status, 413)
        except (OSError, http.client.HTTPException):
            pass  # the reply was lost with the rest
        connection.close()
        self.assertEqual(self.server.ask(FRANCE), PARIS)
        self.assertLess(anonymous_kib(self.server.pid) - before, 160 << 10)

    # C131: an idle server used whole cores.
    def test_an_idle_server_rests(self):
        self.server.ask(FRANCE)
        before, start = processor_seconds(self.server.pid), time.monotonic()
        time.sleep(3)
        self.assertLess((processor_seconds(self.server.pid) - before) / (time.monotonic() - start), 0.02)

    # C101: words of one request showed up in another.
    def test_answers_of_many_at_once_are_those_of_each_alone(self):
        questions = [f"What is the capital of {country}?" for country in ("France", "Portugal", "Thailand")]
        questions += [f"What is {a} + {a + 3}?" for a in range(2, 9)]
        alone = {question: self.server.ask(question) for question in questions}
        wrong, lock = [], threading.Lock()

        def run_all(offset):
            for i in range(len(questions)):
                question = questions[(i + offset) % len(questions)]
                found = self.server.ask(question)
                if found != alone[question]:
                    with lock:
                        wrong.append((question, found))

        threads = [threading.Thread(target=run_all, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
