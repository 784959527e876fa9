#!/usr/bin/env python3
"""Requests that have broken other servers: each gets its status and an error that names the field, and the next good
request gets its usual answer."""
import http.client
import json
import random
import threading
import unittest

from hadal_command import GOLDEN
from served import Server, chat

FRANCE, PARIS = "What is the capital of France?", "The capital of France is Paris."
CASES = [json.loads(line) for line in (GOLDEN / "server/requests_invalid.jsonl").read_text().splitlines()]
RAW = json.loads((GOLDEN / "server/raw_bodies/expect.json").read_text())

# The field that the error of a case must name, where its own name does not say it.
FIELDS = {"max_tokens_zero_chat": "max_tokens", "max_tokens_negative": "max_tokens", "max_tokens_string": "max_tokens",
          "top_k_real": "top_k", "n_zero": "n", "n_huge": "n", "temperature_negative": "temperature",
          "top_p_above_one": "top_p", "logit_bias_out_of_vocab": "logit_bias", "logit_bias_not_number": "logit_bias",
          "stop_token_id_out_of_vocab": "stop_token_ids[0]", "top_logprobs_too_many": "top_logprobs",
          "messages_empty": "messages", "messages_missing": "messages", "messages_string": "messages",
          "message_without_role": "messages[0].role", "content_null_user": "messages[0].content",
          "role_unknown": "messages[0].role", "stop_empty_string": "stop", "stop_has_number": "stop[0]",
          "stream_options_without_stream": "stream_options", "top_logprobs_without_logprobs": "top_logprobs",
          "prompt_ids_negative": "prompt[0]", "prompt_ids_past_vocab": "prompt[0]", "prompt_ids_real": "prompt[0]",
          "prompt_list_empty": "prompt", "prompt_mixed_list": None, "echo_without_new_tokens": "max_tokens",
          "json_object_not_list": "body", "tools_string": "tools", "tool_choice_unknown_function": "tool_choice",
          "response_format_unknown": "response_format.type", "prompt_empty_string": None}


def setUpModule():
    global server
    server = Server("--quiet")


def tearDownModule():
    assert server.close() == 0, server.errors


def statuses(value):
    return value if isinstance(value, list) else [value]


class Malformed(unittest.TestCase):
    def check(self, case, status, body):
        reply = json.loads(body.decode("utf-8"))
        self.assertIn(status, statuses(case["status"]), (case["name"], reply))
        if status == 200:
            return
        error = reply["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["type"], "invalid_request_error")
        if FIELDS.get(case["name"]):
            self.assertEqual(error["param"], FIELDS[case["name"]], (case["name"], error))
            self.assertTrue(error["message"].startswith(error["param"] + ": "))

    def post(self, connection, path, body):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read()

    # C119: wrong JSON types gave 500 or a cut connection.
    def test_each_case_in_order_on_one_connection(self):
        connection = server.connect()
        for case in CASES:
            self.check(case, *self.post(connection, case["path"], case["body"]))
            if case.get("follow_up"):
                status, body = self.post(connection, "/v1/chat/completions", chat(FRANCE))
                self.assertEqual(json.loads(body)["choices"][0]["message"]["content"], PARIS, case["name"])
        connection.close()

    def test_every_refusal_names_a_field(self):
        for case in CASES:
            if 200 in statuses(case["status"]):
                continue
            status, _, body = server.request("POST", case["path"], case["body"])
            self.assertEqual(status, 400, case["name"])
            self.assertIsNotNone(json.loads(body)["error"]["param"], case["name"])

    # C120: one bad request stopped the engine for all.
    def test_in_random_order_among_good_ones(self):
        work = [(case["path"], case["body"], case) for case in CASES]
        work += [("/v1/chat/completions", chat(FRANCE), None)] * 50
        random.Random(5).shuffle(work)
        failures, lock = [], threading.Lock()

        def run():
            connection = server.connect()
            while True:
                with lock:
                    if not work:
                        break
                    path, body, case = work.pop()
                try:
                    status, reply = self.post(connection, path, body)
                    if case is not None:
                        self.check(case, status, reply)
                    else:
                        self.assertEqual(json.loads(reply)["choices"][0]["message"]["content"], PARIS)
                except (AssertionError, OSError, http.client.HTTPException) as failure:
                    failures.append(repr(failure))
                    connection = server.connect()
            connection.close()

        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    # C040, C113, C114, C115: encodings, halves of pairs, nesting.
    def test_raw_bodies(self):
        for case in RAW:
            data = (GOLDEN / "server/raw_bodies" / case["file"]).read_bytes()
            status, _, body = server.request("POST", "/v1/chat/completions", data)
            reply = json.loads(body.decode("utf-8"))
            self.assertIn(status, statuses(case["status"]), (case["file"], reply))
            if status == 400:
                self.assertIsNotNone(reply["error"]["param"], reply)
            self.assertEqual(server.ask(FRANCE), PARIS)

    # C112: an empty prompt hung the server.
    def test_empty_texts_are_answered_at_once(self):
        for body in (chat(""), chat("   \n"), chat([{"role": "user", "content": []}])):
            status, _, _ = server.request("POST", "/v1/chat/completions", {**body, "max_tokens": 2})
            self.assertEqual(status, 200)
        self.assertEqual(server.request("POST", "/v1/completions", {"prompt": "", "max_tokens": 2})[0], 200)


class Documented(unittest.TestCase):
    """What an API documents and this server cannot do is refused by name."""

    def refused(self, path, body, field):
        status, reply = server.post(path, body)
        self.assertEqual(status, 400, (field, reply))
        self.assertIn(field, reply["error"]["message"].split(":")[0])

    def test_of_chat(self):
        tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
        for field, value in {
                "functions": [{"name": "f"}], "function_call": "auto", "audio": {"voice": "a"}, "store": True,
                "modalities": ["text", "audio"], "prediction": {"type": "content", "content": "x"},
                "web_search_options": {}, "service_tier": "flex", "verbosity": "low", "reasoning_effort": "heroic",
                "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}},
                "thinking": {"type": "perhaps"}, "tools": [{**tool, "type": "custom"}], "seed": "x", "user": 5,
                "stream": "yes", "logprobs": 3, "parallel_tool_calls": "no", "min_p": 2, "presence_penalty": 3,
                "frequency_penalty": -3, "repetition_penalty": 0, "metadata": 1, "logit_bias": [1], "model": 7,
                "prompt_cache_retention": "24h", "cache_salt": 1, "ignore_eos": 1}.items():
            self.refused("/v1/chat/completions", chat(FRANCE, **{field: value}), field)
        self.refused("/v1/chat/completions", chat(FRANCE, tool_choice="required"), "tool_choice")
        strict = {"type": "function", "function": {"name": "f", "strict": True}}
        self.refused("/v1/chat/completions", chat(FRANCE, tools=[strict]), "tools[0].function.strict")
        self.refused("/v1/chat/completions", chat(FRANCE, tools=[tool], tool_choice="required",
                                                  thinking={"type": "enabled"}), "tool_choice")
        self.refused("/v1/chat/completions", chat(FRANCE, max_tokens=5, max_completion_tokens=6),
                     "max_completion_tokens")
        self.refused("/v1/chat/completions", chat([{"role": "user", "content": "x", "name": "Bo"}]),
                     "messages[0].name")
        image = {"type": "image_url", "image_url": {"url": "data:"}}
        self.refused("/v1/chat/completions", chat([{"role": "user", "content": [image]}]),
                     "messages[0].content[0].type")
        self.refused("/v1/chat/completions", chat([{"role": "user", "content": "x"},
                                                   {"role": "assistant", "content": "y"}]), "messages")
        self.refused("/v1/chat/completions", chat([{"role": "system", "content": "x"}]), "messages")
        self.refused("/v1/chat/completions", chat([{"role": "tool", "tool_call_id": "x", "content": "y"}]),
                     "tool_call_id")

    def test_of_completions(self):
        for field, value in {"best_of": 3, "logprobs": 21, "echo": "x", "suffix": 1, "n": 0, "prompt": 5}.items():
            self.refused("/v1/completions", {"prompt": "x", **{field: value}}, field)
        self.refused("/v1/completions", {"prompt": "x", "echo": True, "logprobs": 1}, "echo")
        self.refused("/v1/completions", {"prompt": [1, 2], "suffix": "x"}, "prompt")

    def test_of_messages(self):
        good = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 4}
        for field, value in {"max_tokens": 0, "temperature": 1.5, "top_k": -2, "stop_sequences": [""], "system": 4,
                             "container": "c", "mcp_servers": [], "service_tier": "x", "output_format": {"type": "json_schema"},
                             "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
                             "output_config": {"effort": "heroic"},
                             "thinking": {"type": "x"}, "tool_choice": {"type": "any"}, "messages": [],
                             "tools": [{"name": "f"}]}.items():
            self.refused("/v1/messages", {**good, **{field: value}}, field)
        self.refused("/v1/messages", {"messages": good["messages"]}, "max_tokens")
        self.refused("/v1/messages", {**good, "tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0].type")

    def test_of_responses(self):
        for field, value in {"previous_response_id": "resp_1", "conversation": "c", "background": True, "store": True,
                             "truncation": "auto", "prompt": {"id": "p"}, "max_tool_calls": 3, "include": ["x"],
                             "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}},
                             "tools": [{"type": "web_search"}], "input": [], "max_output_tokens": 0}.items():
            self.refused("/v1/responses", {"input": "x", **{field: value}}, field)

    def test_of_texts(self):
        self.refused("/detokenize", {"tokens": [-1]}, "tokens[0]")
        self.refused("/detokenize", {}, "tokens")
        self.refused("/tokenize", {"prompt": 4}, "prompt")


if __name__ == "__main__":
    unittest.main()
