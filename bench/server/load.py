#!/usr/bin/env python3
"""Load on a server: many streams at once, some of which leave at random, and bad requests between them. Every other
answer must be the text that its question gets alone. Prints the times between tokens, the memory and what is left.

    bench/server/load.py build/release/hadal [--streams 200] [--seconds 60] [--model M]
"""
import argparse
import asyncio
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

COUNTRIES = ["France", "Portugal", "Thailand", "Spain", "Italy", "Japan"]
ANIMALS = ["cat", "bear", "fox", "hen", "whale", "owl"]
QUESTIONS = ([f"What is the capital of {country}?" for country in COUNTRIES] +
             [f"Tell me a story about a {animal}." for animal in ANIMALS] +
             [f"What is {a} + {b}?" for a in range(3, 7) for b in (2, 9)])
BAD = [b"{", b"[]", b'{"messages": []}', b'{"messages": [{"role": "user", "content": "x"}], "temperature": -1}']


def request_bytes(body):
    return (b"POST /v1/chat/completions HTTP/1.1\r\nHost: load\r\nConnection: close\r\nContent-Length: " +
            str(len(body)).encode() + b"\r\n\r\n" + body)


def body_of(question, stream=True):
    return json.dumps({"messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 120,
                       "stream": stream}).encode()


class Load:
    def __init__(self, port, expected):
        self.port, self.expected = port, expected
        self.whole = self.left = self.refused = self.busy = 0
        self.gaps, self.first, self.faults = [], [], []

    async def stream(self, question, leaves_after):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            start = last = time.monotonic()
            writer.write(request_bytes(body_of(question)))
            status = await reader.readline()
            if b" 429 " in status:
                self.busy += 1
                return
            if b" 200 " not in status:
                self.faults.append(f"{question}: {status!r}")
                return
            text, count = "", 0
            while True:
                line = await reader.readline()
                if not line or line == b"data: [DONE]\n":
                    break
                if not line.startswith(b"data: "):
                    continue
                event = json.loads(line[6:])
                if "error" in event:
                    self.faults.append(f"{question}: {event}")
                    return
                piece = event["choices"][0]["delta"].get("content")
                if piece:
                    now = time.monotonic()
                    (self.gaps if count else self.first).append(now - (last if count else start))
                    last, count, text = now, count + 1, text + piece
                    if leaves_after is not None and count >= leaves_after:
                        self.left += 1
                        return
            if text == self.expected[question]:
                self.whole += 1
            else:
                self.faults.append(f"{question}: expected {self.expected[question]!r}, found {text!r}")
        finally:
            writer.close()

    async def bad(self, rng):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request_bytes(rng.choice(BAD)))
            status = await reader.readline()
            if b" 400 " in status:
                self.refused += 1
            else:
                self.faults.append(f"a bad request: {status!r}")
        finally:
            writer.close()

    async def worker(self, seed, end):
        rng = random.Random(seed)
        while time.monotonic() < end:
            draw = rng.random()
            try:
                if draw < 0.05:
                    await self.bad(rng)
                else:
                    await self.stream(rng.choice(QUESTIONS), rng.randrange(12) if draw < 0.15 else None)
            except OSError as failure:
                self.faults.append(repr(failure))


def memory_kib(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "VmSwap")))


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


async def ask_alone(port, question):
    load = Load(port, {question: None})
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_bytes(body_of(question, stream=False)))
    reply = await reader.read()
    writer.close()
    del load
    return json.loads(reply.split(b"\r\n\r\n", 1)[1])["choices"][0]["message"]["content"]


async def run(args, pid, port):
    expected = {question: await ask_alone(port, question) for question in QUESTIONS}
    files = len(os.listdir(f"/proc/{pid}/fd"))
    load = Load(port, expected)
    end = time.monotonic() + args.seconds
    tasks = [asyncio.create_task(load.worker(seed, end)) for seed in range(args.streams)]
    memory = []
    while time.monotonic() < end:
        await asyncio.sleep(min(2, args.seconds / 10))
        memory.append(memory_kib(pid))
    await asyncio.gather(*tasks)
    await asyncio.sleep(1)
    half = memory[len(memory) // 2:]
    tokens = len(load.gaps) + len(load.first)
    print(f"{args.streams} streams for {args.seconds} s: {load.whole} whole and right, {load.left} left, "
          f"{load.refused} refused as they should, {load.busy} told to wait, {len(load.faults)} wrong")
    print(f"deltas: {tokens / args.seconds:.0f}/s")
    for name, values in (("first delta", load.first), ("between deltas", load.gaps)):
        print(f"{name}: median {statistics.median(values) * 1e3:.1f} ms, p99 {percentile(values, 0.99) * 1e3:.1f} ms, "
              f"worst {max(values) * 1e3:.1f} ms")
    print(f"memory: {memory[0] >> 10} MiB at first, {half[0] >> 10} MiB half way, {memory[-1] >> 10} MiB at the end")
    print(f"descriptors: {files} before, {len(os.listdir(f'/proc/{pid}/fd'))} after")
    for fault in load.faults[:5]:
        print("wrong:", fault)
    return not load.faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hadal")
    parser.add_argument("--model")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    command = [args.hadal, "serve", *([args.model] if args.model else []), "--port", "0", "--quiet"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        is_good = asyncio.run(run(args, server.pid, port))
    finally:
        server.terminate()
        code = server.wait(timeout=30)
    print(f"exit code of the server: {code}")
    return 0 if is_good and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
