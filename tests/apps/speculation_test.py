#!/usr/bin/env python3
"""Guessing ahead through the binary, on the bundled model: flags, usage, and equal answers."""
import json
import unittest

from hadal_command import SOURCE, check_refused, run
from served import Server

TINY = SOURCE / "models" / "tiny"
STORY = "Long ago, near the old mill, there lived a brown dog. Long ago, near the old mill, there lived"


def answer(*args):
    process = run("run", TINY, "--json", "--raw", "-p", STORY, "--max-tokens", "40", "--ignore-eos", *args)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


class Speculation(unittest.TestCase):
    def test_every_drafter_gives_the_plain_answer_and_tells_what_it_guessed(self):
        for sampling in (["--temperature", "0"], ["--temperature", "0.8", "--seed", "5", "--logprobs", "2"]):
            plain = answer(*sampling)
            for spec in (["ngram"], ["mtp"], ["model", "--draft-model", TINY]):
                found = answer(*sampling, "--spec", *spec, "--spec-depth", "fixed")
                with self.subTest(spec=spec, sampling=sampling):
                    self.assertEqual(found["ids"], plain["ids"])
                    self.assertEqual(found["text"], plain["text"])
                    self.assertEqual(found.get("logprobs"), plain.get("logprobs"))
                    usage = found["usage"]
                    self.assertEqual(usage["completion_tokens"], 40)
                    if spec[0] != "ngram":
                        self.assertGreater(usage["accepted_prediction_tokens"], 5)

    def test_classic_acceptance_gives_a_whole_answer(self):
        found = answer("--temperature", "0.8", "--seed", "5", "--spec", "mtp", "--spec-accept", "classic")
        self.assertEqual(found["usage"]["completion_tokens"], 40)
        greedy = answer("--temperature", "0", "--spec", "mtp", "--spec-accept", "classic")
        self.assertEqual(greedy["ids"], answer("--temperature", "0")["ids"])

    def test_refuses_a_draft_model_that_is_missing_or_speaks_otherwise(self):
        check_refused(self, run("run", TINY, "-p", "x", "--spec", "model"), "--draft-model")
        other = SOURCE / "tests" / "golden" / "models" / "v3-f32" / "model"
        check_refused(self, run("run", TINY, "-p", "x", "--spec", "model", "--draft-model", other),
                      "draft model", "4096")

    def test_a_server_guesses_as_it_was_told_and_as_each_request_says(self):
        with Server("--spec", "mtp", "--spec-tokens", "3", "--spec-depth", "fixed", model=TINY) as server:
            body = {"prompt": STORY, "max_tokens": 40, "ignore_eos": True, "temperature": 0}
            status, guessed = server.post("/v1/completions", body)
            self.assertEqual(status, 200, guessed)
            for speculation in ({"drafter": "none"}, {"drafter": "ngram"}, {"tokens": 1}):
                status, other = server.post("/v1/completions", {**body, "speculation": speculation})
                self.assertEqual(status, 200, other)
                self.assertEqual(other["choices"][0]["text"], guessed["choices"][0]["text"])
                details = other["usage"]["completion_tokens_details"]
                if speculation == {"drafter": "none"}:
                    self.assertEqual(details["accepted_prediction_tokens"], 0)
            details = guessed["usage"]["completion_tokens_details"]
            self.assertGreater(details["accepted_prediction_tokens"], 5)
            status, streamed = server.stream("/v1/completions", {**body, "stream": True})
            pieces = [json.loads(data)["choices"] for _, data in streamed if data != "[DONE]"]
            text = "".join(choices[0]["text"] for choices in pieces if choices)
            self.assertEqual(text, guessed["choices"][0]["text"])
            for wrong in ({"drafter": "model"}, {"drafter": "mtp", "tokens": 9}, {"drafter": "trees"}):
                status, reply = server.post("/v1/completions", {**body, "speculation": wrong})
                self.assertEqual(status, 400, reply)
                self.assertIn("speculation", reply["error"]["message"])
            metrics = server.request("GET", "/metrics")[2].decode()
            self.assertIn('hadal_draft_position_tokens_total{position="1",outcome="accepted"}', metrics)
            self.assertRegex(metrics, r"hadal_draft_step_tokens_total [1-9]")

    def test_wrong_usage_has_code_2(self):
        for args in (["--spec", "trees"], ["--spec", "mtp", "--spec-tokens", "99"], ["--spec-accept", "maybe"]):
            self.assertEqual(run("run", TINY, "-p", "x", *args).returncode, 2, args)


if __name__ == "__main__":
    unittest.main()
