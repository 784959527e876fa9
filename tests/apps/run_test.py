#!/usr/bin/env python3
"""hadal run through the binary, on the bundled model."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from hadal_command import GOLDEN, HADAL, SOURCE, check_refused, run

TINY = SOURCE / "models" / "tiny"
RAW_FRANCE = "<｜begin▁of▁sentence｜><｜User｜>What is the capital of France?<｜Assistant｜></think>"
PARIS = "The capital of France is Paris."


def answer(*args, stdin=""):
    """The JSON object of a run that must succeed."""
    process = run("run", TINY, "--json", "--temperature", "0", *args, stdin=stdin)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("\n") == 1, process.stdout
    return json.loads(process.stdout)


class Prompts(unittest.TestCase):
    def test_answers_in_the_chat_layout_by_default(self):
        found = answer("-p", "What is the capital of France?")
        self.assertEqual(found["text"], PARIS)
        self.assertEqual(found["reasoning"], "")
        self.assertEqual(found["tool_calls"], [])
        self.assertEqual(found["finish_reason"], "stop")
        self.assertEqual(found["prompt_ids"].count(0), 1)
        self.assertEqual(found["prompt_ids"][0], 0)

    def test_raw_text_may_name_control_tokens_and_begins_once(self):
        with_mark = answer("--raw", "-p", RAW_FRANCE)
        without = answer("--raw", "-p", RAW_FRANCE.removeprefix("<｜begin▁of▁sentence｜>"))
        chat = answer("-p", "What is the capital of France?")
        for found in (with_mark, without):
            self.assertEqual(found["text"], PARIS)
            self.assertEqual(found["prompt_ids"], chat["prompt_ids"])

    def test_takes_the_prompt_from_a_file_and_from_standard_input(self):
        expected = answer("-p", "What is the capital of France?")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "prompt.txt"
            path.write_text("What is the capital of France?\n")
            self.assertEqual(answer("--prompt-file", path)["prompt_ids"], expected["prompt_ids"])
        found = answer(stdin="What is the capital of France?\n")
        self.assertEqual(found["prompt_ids"], expected["prompt_ids"])
        self.assertEqual(found["ids"], expected["ids"])

    def test_takes_token_ids_as_they_are(self):
        prompt = answer("-p", "What is the capital of France?")["prompt_ids"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens.json"
            path.write_text(json.dumps(prompt))
            found = answer("--tokens", path)
        self.assertEqual(found["prompt_ids"], prompt)
        self.assertEqual(found["text"], PARIS)

    def test_control_tokens_in_a_message_are_text(self):
        found = answer("-p", "<｜Assistant｜>", "--max-tokens", "1")
        ids = found["prompt_ids"]
        plain = answer("-p", "x", "--max-tokens", "1")["prompt_ids"]
        self.assertEqual(ids.count(plain[-2]), 1, "only the template writes the assistant's mark")

    def test_thinks_when_asked(self):
        found = answer("--think", "on", "-p", "What is 7 + 5?")
        self.assertEqual(found["reasoning"], "I start with 7 and add 5. The result is 11.")
        self.assertEqual(found["text"], "7 + 5 = 11.")

    def test_uses_the_bundled_model_when_none_is_named(self):
        process = run("run", "--json", "--temperature", "0", "-p", "What is the capital of France?")
        self.assertEqual(json.loads(process.stdout)["text"], PARIS)

    def test_text_that_looks_like_a_list_is_text(self):
        found = answer("--raw", "-p", "[1, 2]", "--max-tokens", "1")
        self.assertGreater(len(found["prompt_ids"]), 3)


class Output(unittest.TestCase):
    def test_streams_plain_text_for_people(self):
        process = run("run", TINY, "--temperature", "0", "-p", "What is the capital of France?")
        self.assertEqual(process.returncode, 0)
        self.assertEqual(process.stdout, PARIS + "\n")
        self.assertIn("tokens/s", process.stderr)

    def test_marks_reasoning(self):
        process = run("run", TINY, "--temperature", "0", "--think", "on", "-p", "What is 7 + 5?")
        self.assertEqual(process.stdout,
                         "<think>I start with 7 and add 5. The result is 11.</think>\n7 + 5 = 11.\n")

    def test_counts_usage_and_times(self):
        found = answer("-p", "What is the capital of France?")
        usage = found["usage"]
        self.assertEqual(usage["prompt_tokens"], len(found["prompt_ids"]))
        self.assertEqual(usage["completion_tokens"], len(found["ids"]))
        self.assertEqual(usage["cached_tokens"], 0)
        self.assertEqual(usage["accepted_prediction_tokens"], 0)
        self.assertEqual(usage["rejected_prediction_tokens"], 0)
        for key in ("load_s", "prefill_s", "decode_s", "prefill_tokens_per_s", "decode_tokens_per_s"):
            self.assertGreater(found["timings"][key], 0, key)

    def test_gives_logprobs_with_alternatives(self):
        found = answer("-p", "What is the capital of France?", "--logprobs", "3")
        self.assertEqual([entry["id"] for entry in found["logprobs"]], found["ids"])
        for entry in found["logprobs"]:
            top = entry["top_logprobs"]
            self.assertEqual(len(top), 3)
            self.assertEqual(top[0]["id"], entry["id"], "greedy takes the best")
            self.assertEqual(top[0]["logprob"], entry["logprob"])
            self.assertLessEqual(top[0]["logprob"], 0)

    def test_gives_several_answers(self):
        process = run("run", TINY, "--json", "--n", "3", "--seed", "4", "--temperature", "1.5", "-p", "Tell me a story.",
                      "--max-tokens", "12")
        found = json.loads(process.stdout)
        self.assertEqual(len(found["choices"]), 3)
        self.assertEqual(found["choices"][0]["ids"], found["ids"])
        self.assertNotEqual(found["choices"][0]["ids"], found["choices"][1]["ids"])
        self.assertEqual(found["usage"]["completion_tokens"], sum(len(c["ids"]) for c in found["choices"]))


class Sampling(unittest.TestCase):
    def test_follows_the_models_own_settings_without_flags(self):
        # generation_config.json of the tiny model says temperature 0.6.
        texts = {run("run", TINY, "--json", "--seed", seed, "-p", "Tell me a story.", "--max-tokens", "20").stdout
                 .split('"ids"')[1].split("]")[0] for seed in range(4)}
        self.assertGreater(len(texts), 1)

    def test_a_seed_repeats_its_draws_and_is_reported(self):
        args = ["-p", "Tell me a story.", "--max-tokens", "20", "--temperature", "1"]
        first = json.loads(run("run", TINY, "--json", *args).stdout)
        again = json.loads(run("run", TINY, "--json", *args, "--seed", first["seed"]).stdout)
        self.assertEqual(first["ids"], again["ids"])

    def test_stops_and_limits(self):
        found = answer("-p", "What is the capital of France?", "--stop", " France", "--stop", "zzz")
        self.assertEqual(found["text"], "The capital of")
        self.assertEqual(found["finish_reason"], "stop")
        found = answer("-p", "What is the capital of France?", "--max-tokens", "3")
        self.assertEqual(len(found["ids"]), 3)
        self.assertEqual(found["finish_reason"], "length")
        found = answer("-p", "What is the capital of France?", "--max-tokens", "40", "--ignore-eos")
        self.assertEqual(len(found["ids"]), 40)

    def test_bias_acts_on_greedy_choices(self):
        first = answer("-p", "What is the capital of France?", "--max-tokens", "1")["ids"][0]
        found = answer("-p", "What is the capital of France?", "--max-tokens", "1", "--logit-bias", f"{first}=-100")
        self.assertNotEqual(found["ids"][0], first)

    def test_is_the_same_for_threads_chunks_and_company(self):
        expected = answer("-p", "Tell me a story.", "--max-tokens", "30", "--ignore-eos")["ids"]
        for flags in (["--threads", "1"], ["--threads", "2", "--chunk", "1"], ["--chunk", "7"], ["--n", "2"]):
            found = answer("-p", "Tell me a story.", "--max-tokens", "30", "--ignore-eos", *flags)
            self.assertEqual(found["ids"], expected, flags)


class Failures(unittest.TestCase):
    def test_names_what_is_missing(self):
        check_refused(self, run("run", "/no/such/model", "-p", "x"), "/no/such/model")
        check_refused(self, run("run", TINY, "--prompt-file", "/no/such/file"), "/no/such/file")
        check_refused(self, run("run", TINY, "--tokens", "/no/such/file"), "/no/such/file")

    def test_refuses_ids_that_do_not_exist(self):
        for content, piece in (("[1, 4096]", "4096"), ("[-1]", "-1"), ("{}", "list"), ("[", "tokens.json"), ("[]", "at least one token id")):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "tokens.json"
                path.write_text(content)
                check_refused(self, run("run", TINY, "--tokens", path), piece)
        check_refused(self, run("run", TINY, "-p", "x", "--logit-bias", "99999=1"), "logit_bias", "99999")

    def test_refuses_a_prompt_longer_than_the_context_with_both_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens.json"
            path.write_text(json.dumps([5] * 2048))
            check_refused(self, run("run", TINY, "--tokens", path), "2048 tokens", "context of 2048")

    def test_wrong_usage_has_code_2(self):
        for args in (["--spec", "nonsense"], ["--spec", "ngram", "--spec-tokens", "0"],
                     ["--temperature", "-1"], ["--temperature", "warm"], ["--top-p", "2"], ["--max-tokens", "0"],
                     ["--logit-bias", "5"], ["--layout", "v9"], ["--no-such-flag"], ["--raw", "--chat"],
                     ["--raw", "--system", "x"], ["--prompt-file", "y"]):
            process = run("run", TINY, "-p", "x", *args)
            self.assertEqual(process.returncode, 2, f"{args}: {process.stderr}")
            self.assertEqual(process.stdout, "")
            self.assertTrue(process.stderr)

    def test_spec_none_is_accepted(self):
        answer("-p", "x", "--max-tokens", "1", "--spec", "none", "--spec-tokens", "3")

    def test_works_without_a_tokenizer(self):
        models = sorted(p.parent for p in GOLDEN.glob("**/config.json") if (p.parent / "model.safetensors").exists())
        models = [m for m in models if not (m / "tokenizer.json").exists()]
        self.assertTrue(models, "a golden model without a tokenizer")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens.json"
            path.write_text("[3, 1, 4, 1, 5]")
            process = run("run", models[0], "--tokens", path, "--json", "--max-tokens", "4", "--ignore-eos")
            self.assertEqual(process.returncode, 0, process.stderr)
            found = json.loads(process.stdout)
            self.assertIsNone(found["text"])
            self.assertEqual(len(found["ids"]), 4)
            process = run("run", models[0], "--tokens", path, "--max-tokens", "4", "--ignore-eos")
            self.assertEqual([int(i) for i in process.stdout.split()], found["ids"])
        check_refused(self, run("run", models[0], "-p", "x"), "tokenizer")


class Interrupts(unittest.TestCase):
    def test_ctrl_c_gives_what_is_there_and_code_130(self):
        process = subprocess.Popen([HADAL, "run", str(TINY), "--raw", "-p", "Once", "--ignore-eos", "--temperature", "0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertTrue(first + rest.strip())
        self.assertIn("cancelled", errors)
        self.assertNotIn("error", errors)


if __name__ == "__main__":
    unittest.main()
