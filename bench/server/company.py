#!/usr/bin/env python3
"""What requests do to each other on a real shape, whose weights may be random: the bundled tokenizer is put beside a
model that has none, and answers are drawn from its words, so that every token is told. The figures:

  warm     time to the first token of a long prompt, cold and asked again
  gaps     worst time between tokens of running streams while a long prompt of a stranger is read, against --max-step-ms
  cancel   time from a client's leaving in the middle of a long prompt to the end of the work for it
  spec     tokens a second with guesses from the text over those without, in turn, where the next word is one of 200, of 2,
           or always the same: the governor has to see what pays
  batch    tokens a second of many streams at once, against `hadal bench` at the same batch in the same run

    bench/server/company.py build/release/hadal MODEL [--only WHAT] [--prompt-tokens 4096] [--streams 8] [--batch 32]
                            [--leavers 20] [--rounds 5] [--json]
"""
import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TOKENIZER = os.path.join(os.path.dirname(__file__), "../../models/tiny/tokenizer.json")


def whole_words():
    """Ids of the bundled tokenizer whose text is letters: a piece of a character would be held back until the next."""
    with open(TOKENIZER, encoding="utf-8") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    return sorted(idx for text, idx in vocabulary.items() if text.lstrip("\u0120").isascii() and
                  text.lstrip("\u0120").isalpha())


WORDS = whole_words()


class Server:
    def __init__(self, hadal, model, *flags):
        command = [hadal, "serve", model, "--port", "0", "--quiet", *map(str, flags)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def close(self):
        self.process.terminate()
        return self.process.wait(timeout=60)

    def stream(self, prompt, max_tokens, times, num_words=200, drafter="none"):
        """Asks with ids for a prompt and appends the time of the request and of each delivery."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        # Any of 200 words comes next: as varied for the experts as a real answer.
        words = random.Random(prompt[0]).sample(WORDS, num_words)
        body = {"prompt": prompt, "max_tokens": max_tokens, "ignore_eos": True, "temperature": 1, "stream": True,
                "logit_bias": {word: 100 for word in words}, "speculation": {"drafter": drafter}}
        times.append(time.monotonic())
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        if reply.status != 200:
            raise RuntimeError(f"{reply.status}: {reply.read()!r}")
        while True:
            line = reply.readline()
            if not line or line.startswith(b"data: [DONE]"):
                break
            if line.startswith(b"data: "):
                times.append(time.monotonic())
        connection.close()


def random_prompt(rng, length):
    return [rng.choice(WORDS) for _ in range(length)]


def with_tokenizer(model, folder):
    """A folder that shows the model's files and, where it has none, the bundled tokenizer."""
    if os.path.exists(os.path.join(model, "tokenizer.json")):
        return model
    for name in os.listdir(model):
        os.symlink(os.path.abspath(os.path.join(model, name)), os.path.join(folder, name))
    os.symlink(os.path.abspath(TOKENIZER), os.path.join(folder, "tokenizer.json"))
    return folder


def first_token(server, prompt):
    times = []
    server.stream(prompt, 1, times)
    return times[1] - times[0]


def run_streams(server, prompts, max_tokens, *how):
    all_times = [[] for _ in prompts]
    threads = [threading.Thread(target=server.stream, args=(prompt, max_tokens, times, *how))
               for prompt, times in zip(prompts, all_times)]
    for thread in threads:
        thread.start()
    return threads, all_times


def measure_warm(server, rng, args):
    prompt = random_prompt(rng, args.prompt_tokens)
    cold = first_token(server, prompt)
    warm = statistics.median(first_token(server, prompt) for _ in range(5))
    return {"cold_s": cold, "warm_s": warm, "warm_over_cold": warm / cold}


def measure_gaps(server, rng, args):
    prompts = [random_prompt(rng, 16) for _ in range(args.streams)]
    threads, all_times = run_streams(server, prompts, 2000)
    while any(len(times) < 10 for times in all_times):
        time.sleep(0.05)
    alone = [b - a for times in all_times for a, b in zip(times[4:], times[5:])]
    begin = time.monotonic()
    first_token(server, random_prompt(rng, args.prompt_tokens))
    end = time.monotonic()
    gaps = [b - a for times in all_times for a, b in zip(times, times[1:]) if b > begin and a < end and a > times[0]]
    server.close()  # the streams end with it
    for thread in threads:
        thread.join()
    return {"target_s": args.max_step_ms / 1e3, "alone_median_s": statistics.median(alone), "read_s": end - begin,
            "beside_median_s": statistics.median(gaps), "beside_p99_s": statistics.quantiles(gaps, n=100)[98],
            "beside_worst_s": max(gaps),
            "worst_over_target": max(gaps) / (args.max_step_ms / 1e3)}


def count_cancelled(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return int(text.split('hadal_sequences_ended_total{reason="cancelled"} ')[1].split()[0])


def measure_cancel(server, rng, args):
    delays = []
    for moment in range(args.leavers):
        body = json.dumps({"prompt": random_prompt(rng, args.prompt_tokens), "max_tokens": 1})
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        time.sleep(rng.uniform(0.5, 8))  # anywhere in the prompt
        connection.close()
        start = time.monotonic()
        while count_cancelled(server) == moment:
            if time.monotonic() - start > 60:
                raise RuntimeError("the work for a client that left goes on")
            time.sleep(0.002)
        delays.append(time.monotonic() - start)
    return {"leavers": args.leavers, "median_s": statistics.median(delays), "worst_s": max(delays)}


def measure_spec(server, rng, args):
    def rate(prompts, num_tokens, *how):
        threads, all_times = run_streams(server, prompts, num_tokens, *how)
        for thread in threads:
            thread.join()
        seconds = max(times[-1] for times in all_times) - min(times[0] for times in all_times)
        return len(prompts) * num_tokens / seconds

    results = {}
    for num_streams, num_tokens in (1, 96), (args.streams, 32):
        for num_words in 200, 2, 1:
            ratios = []
            # Where nothing can be guessed a small difference is looked for.
            for turn in range(args.rounds if num_words == 200 else min(args.rounds, 4)):
                # The same answers, token for token, and each way first in every other turn.
                prompts = [random_prompt(rng, 16) for _ in range(num_streams)]
                ways = ["none", "ngram"] if turn % 2 == 0 else ["ngram", "none"]
                rates = {way: rate(prompts, num_tokens, num_words, way) for way in ways}
                ratios.append(rates["ngram"] / rates["none"])
            key = f"{num_streams} streams, {num_words} words"
            error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else None
            results[key] = {"median": statistics.median(ratios), "mean": statistics.fmean(ratios),
                            "standard_error": error, "pairs": len(ratios)}
            print(f"  {key}: {', '.join(f'{ratio:.3f}' for ratio in ratios)}", file=sys.stderr)
    return results


def measure_batch(server, rng, args):
    prompts = [random_prompt(rng, 16) for _ in range(args.batch)]
    threads, all_times = run_streams(server, prompts, 48)
    for thread in threads:
        thread.join()
    begin = max(times[1] for times in all_times)  # all have begun
    end = min(times[-1] for times in all_times)   # none has ended
    count = sum(1 for times in all_times for moment in times[1:] if begin < moment <= end)
    return count / (end - begin)


def bench_batch(args):
    command = [args.hadal, "bench", args.model, "--json", "--depth", "16", "--batch", str(args.batch)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return next(result["tokens_per_s"] for result in report["results"] if result["what"] == "decode")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hadal")
    parser.add_argument("model")
    parser.add_argument("--prompt-tokens", type=int, default=4096)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--max-step-ms", type=int, default=1000)
    parser.add_argument("--leavers", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["warm", "gaps", "cancel", "spec", "batch"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rng = random.Random(1)
    results = {}
    folder = tempfile.TemporaryDirectory()
    model = with_tokenizer(args.model, folder.name)
    for name, measure in (("warm", measure_warm), ("gaps", measure_gaps), ("cancel", measure_cancel),
                          ("spec", measure_spec), ("batch", measure_batch)):
        if args.only not in (None, name):
            continue
        drafters = ["--spec", "ngram"] if name == "spec" else []
        server = Server(args.hadal, model, "--max-step-ms", args.max_step_ms, "--drain-seconds", 0, *drafters)
        try:
            results[name] = measure(server, rng, args)
        finally:
            server.close()
    if "batch" in results:
        served, benched = results["batch"], bench_batch(args)
        results["batch"] = {"served_tokens_per_s": served, "bench_tokens_per_s": benched, "share": served / benched}
    if args.json:
        print(json.dumps(results))
        return 0
    for name, values in results.items():
        print(name)
        for key, value in values.items():
            print(f"  {key}: {value:.3f}" if isinstance(value, float) else f"  {key}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
