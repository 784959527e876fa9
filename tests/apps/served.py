"""A `hadal serve` for a test, and requests to it. Standard library only."""
import http.client
import json
import os
import signal
import subprocess

from hadal_command import HADAL


class Server:
    """Runs until it is closed. log holds the JSON lines of standard error after close()."""

    def __init__(self, *flags, model=None):
        command = [HADAL, "serve", *([str(model)] if model else []), "--port", "0", *map(str, flags)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("hadal: listening on http"):
            raise RuntimeError(f"no address: {line!r} {self.process.stderr.read()!r}")
        self.url = line.split()[-1]
        self.host, port = self.url.split("//")[1].rsplit(":", 1)
        self.port = int(port)
        self.errors = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        return self.process.pid

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body bytes) on a connection of its own."""
        connection = self.connect()
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            if isinstance(body, str):
                body = body.encode()
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def post(self, path, body, headers=None):
        status, _, reply = self.request("POST", path, body, headers)
        return status, json.loads(reply)

    def get(self, path):
        status, _, reply = self.request("GET", path)
        return status, json.loads(reply)

    def stream(self, path, body):
        """(status, list of (event name, data text))."""
        status, headers, reply = self.request("POST", path, body)
        if status != 200:
            return status, json.loads(reply)
        assert headers["Content-Type"].startswith("text/event-stream"), headers["Content-Type"]
        return status, list(events(reply.decode()))

    def ask(self, text, **fields):
        """The joined answer of a plain chat request with greedy choice."""
        status, reply = self.post("/v1/chat/completions", chat(text, **fields))
        assert status == 200, reply
        return reply["choices"][0]["message"]["content"]

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def close(self, number=signal.SIGTERM, timeout=20):
        """Ends the server; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            _, self.errors = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode

    @property
    def log(self):
        return [json.loads(line) for line in self.errors.splitlines() if line.startswith("{")]


def chat(text, **fields):
    messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
    return {"messages": messages, "temperature": 0, **fields}


def events(text):
    """Server-sent events: comments are skipped."""
    name, data = None, []
    for line in text.split("\n"):
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif not line:
            if data:
                yield name, "\n".join(data)
            name, data = None, []
