"""A hub on this machine that speaks as much of Hugging Face's protocol as `hadal pull` uses, and misbehaves as told."""
import hashlib
import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse

COMMIT = "a" * 40


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """`files`: path -> bytes. Files of at least `lfs_bytes` are listed with their sha-256.

    `faults`: path -> list of functions (handler, content) that answer instead, one request each; "*" stands for every file, "api" for the
    listing. A fault returns False to let the request be served as usual."""

    def __init__(self, files, lfs_bytes=1000, page=3, tls=None):
        self.files, self.lfs_bytes, self.page = dict(files), lfs_bytes, page
        self.commit, self.token, self.faults, self.requests = COMMIT, None, {}, []
        self.listing = None  # replaces the true one
        self.cdn = None      # another Hub's address: large files are redirected there
        self.lock = threading.Lock()
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                try:
                    hub.answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients that are killed
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        if tls:  # (certificate, key)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.address = self.address.replace("http:", "https:")
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # What it says

    def entries(self):
        if self.listing is not None:
            return self.listing
        folders = sorted({path.rsplit("/", 1)[0] for path in self.files if "/" in path})
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in folders]
        for path, content in self.files.items():
            entry = {"type": "file", "oid": git_hash(content), "size": len(content), "path": path}
            if len(content) >= self.lfs_bytes:
                entry["oid"] = "1" * 40  # of the pointer
                entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            entries.append(entry)
        return entries

    def answer(self, request):
        address = re.sub(r"^http://[^/]*", "", request.path)  # as a proxy is asked
        path, _, query = address.partition("?")
        path = urllib.parse.unquote(path)
        with self.lock:
            self.requests.append((request.path, dict(request.headers)))
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return self.send(request, 401, b"{}", {"X-Error-Message": "Access to this model is restricted."})
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/(.+)", path)
        if found:
            return self.answer_api(request, found.group(1), found.group(2), found.group(3), query)
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if found and found.group(2) == self.commit and found.group(3) in self.files:
            return self.answer_file(request, found.group(3))
        return self.send(request, 404, b"{}", {"X-Error-Message": "Not found."})

    def answer_api(self, request, repo, what, revision, query):
        if self.take_fault("api", request, b""):
            return None
        if repo != "org/name" or (what == "revision" and revision not in ("main", "refs/pr/1", "v1")):
            return self.send(request, 404, b'{"error":"Repository not found"}', {"X-Error-Message": "Repository not found"})
        if what == "revision":
            return self.send(request, 200, json.dumps({"sha": self.commit, "id": repo}).encode())
        begin = int(urllib.parse.parse_qs(query).get("cursor", ["0"])[0])
        entries = self.entries()
        headers = {}
        if begin + self.page < len(entries):
            headers["Link"] = f'<{self.address}/api/models/{repo}/tree/{revision}?recursive=true&cursor={begin + self.page}>; rel="next"'
        return self.send(request, 200, json.dumps(entries[begin:begin + self.page]).encode(), headers)

    def answer_file(self, request, path):
        content = self.files[path]
        if self.take_fault(path, request, content) or self.take_fault("*", request, content):
            return None
        if self.cdn and len(content) >= self.lfs_bytes:
            return self.send(request, 302, b"", {"Location": f"{self.cdn.address}/x/y/resolve/{self.commit}/{urllib.parse.quote(path)}"})
        begin = self.range_begin(request)
        if begin is None:
            return self.send(request, 200, content)
        if begin >= len(content):
            return self.send(request, 416, b"", {"Content-Range": f"bytes */{len(content)}"})
        return self.send(request, 206, content[begin:], {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"})

    @staticmethod
    def range_begin(request):
        found = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        return int(found.group(1)) if found else None

    def take_fault(self, path, request, content):
        with self.lock:
            faults = self.faults.get(path)
            if not faults:
                return False
            fault = faults.pop(0)
        return fault(request, content) is not False

    @staticmethod
    def send(request, code, body, headers=(), length=None):
        request.send_response(code)
        for name, value in dict(headers).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body) if length is None else length))
        request.end_headers()
        request.wfile.write(body)


# Faults: one answer each.

def code(number, headers=()):
    return lambda request, content: Hub.send(request, number, b"<html>no</html>", headers)


def cut(fraction):
    """The reply ends early, with the connection."""
    def fault(request, content):
        begin = Hub.range_begin(request) or 0
        rest = content[begin:]
        head = {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"} if begin else {}
        Hub.send(request, 206 if begin else 200, rest[:int(len(rest) * fraction)], head, length=len(rest))
        request.wfile.flush()
        request.close_connection = True
    return fault


def whole(request, content):
    """Ignores the range."""
    Hub.send(request, 200, content)


def wrong_content(request, content):
    begin = Hub.range_begin(request) or 0
    rest = bytes(byte ^ 1 for byte in content[begin:])
    head = {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"} if begin else {}
    Hub.send(request, 206 if begin else 200, rest, head)


def wrong_length(change):
    """A body of another length than was listed, honestly announced."""
    def fault(request, content):
        Hub.send(request, 200, (content + b"x" * max(change, 0))[:len(content) + change])
    return fault


def unannounced(change):
    """The same without a Content-Length: the end of the connection ends the body."""
    def fault(request, content):
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write((content + b"x" * max(change, 0))[:len(content) + change])
        request.close_connection = True
    return fault


def wrong_range(request, content):
    """206, but of other bytes than were asked for."""
    Hub.send(request, 206, content[1:], {"Content-Range": f"bytes 1-{len(content) - 1}/{len(content)}"})


def stall(seconds):
    """Some bytes, then silence."""
    def fault(request, content):
        Hub.send(request, 200, content[:100], length=len(content))
        request.wfile.flush()
        time.sleep(seconds)
        request.close_connection = True
    return fault


def slow(chunk, pause):
    """As usual, in small pieces."""
    def fault(request, content):
        begin = Hub.range_begin(request) or 0
        request.send_response(206 if begin else 200)
        if begin:
            request.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        request.send_header("Content-Length", str(len(content) - begin))
        request.end_headers()
        for at in range(begin, len(content), chunk):
            request.wfile.write(content[at:at + chunk])
            time.sleep(pause)
    return fault
