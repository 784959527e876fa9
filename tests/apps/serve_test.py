#!/usr/bin/env python3
"""hadal serve through its sockets, on the bundled model: the APIs of OpenAI and DeepSeek."""
import json
import re
import unittest

from served import Server, chat

PARIS = "The capital of France is Paris."
FRANCE = "What is the capital of France?"
ADD = {"type": "function", "function": {
    "name": "add_numbers", "description": "Add two numbers.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                   "required": ["a", "b"]}}}
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def setUpModule():
    global server
    server = Server("--quiet")


def tearDownModule():
    assert server.close() == 0, server.errors


def deltas(found):
    """The chunks of a chat stream, [DONE] checked and left out."""
    assert found[-1] == (None, "[DONE]"), found[-1]
    return [json.loads(data) for _, data in found[:-1]]


def joined(chunks, index=0):
    """Role, reasoning, content, calls and finish reason as a client joins them."""
    message = {"reasoning": "", "content": "", "calls": [], "finish": None, "role": None}
    for chunk in chunks:
        for choice in chunk["choices"]:
            if choice["index"] != index:
                continue
            delta = choice["delta"]
            assert message["finish"] is None, "nothing follows a finish reason"
            message["role"] = message["role"] or delta.get("role")
            message["content"] += delta.get("content") or ""
            message["reasoning"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", []):
                if call["index"] == len(message["calls"]):
                    assert call["type"] == "function" and call["id"], call
                    message["calls"].append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
                else:
                    assert "id" not in call and "name" not in call["function"], call
                message["calls"][call["index"]]["arguments"] += call["function"]["arguments"]
            message["finish"] = choice["finish_reason"]
    return message


class Service(unittest.TestCase):
    def test_says_how_it_is(self):
        self.assertEqual(server.get("/health"), (200, {"status": "ready"}))
        status, version = server.get("/version")
        self.assertEqual(status, 200)
        self.assertRegex(version["version"], r"^\d+\.\d+\.\d+$")

    def test_lists_its_models(self):
        for path in ("/v1/models", "/models"):
            status, found = server.get(path)
            self.assertEqual((status, found["object"]), (200, "list"))
            self.assertEqual([model["id"] for model in found["data"]], ["tiny"])
        self.assertEqual(server.get("/v1/models/tiny")[1]["object"], "model")
        status, found = server.get("/v1/models/other")
        self.assertEqual(status, 404)
        self.assertIn("other", found["error"]["message"])

    def test_tells_unknown_paths_and_methods(self):
        status, headers, body = server.request("GET", "/v1/nothing")
        self.assertEqual(status, 404)
        self.assertIn("/v1/nothing", json.loads(body)["error"]["message"])
        status, headers, body = server.request("GET", "/v1/chat/completions")
        self.assertEqual((status, headers["Allow"]), (405, "POST"))

    def test_numbers_every_reply(self):
        ids = {server.request("GET", "/health")[1]["x-request-id"] for _ in range(20)}
        self.assertEqual(len(ids), 20)

    def test_shows_a_page_that_loads_nothing_from_elsewhere(self):
        status, headers, body = server.request("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotIn(b"http", body)

    def test_counts_for_prometheus(self):
        server.ask(FRANCE)
        status, headers, body = server.request("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertIn("text/plain", headers["Content-Type"])
        self.assertIn('hadal_http_requests_total{route="chat",status="200"}', body.decode())
        self.assertRegex(body.decode(), r"(?m)^hadal_generated_tokens_total [1-9]")
        for what in ("weights", "cache"):
            self.assertRegex(body.decode(), r'(?m)^hadal_step_read_bytes_total\{what="%s"\} [1-9]' % what)
        self.assertRegex(body.decode(), r"(?m)^hadal_memory_read_limit_bytes_per_second [1-9]")
        imbalances = re.findall(r'(?m)^hadal_expert_imbalance_ratio\{layer="\d+"\} (\S+)$', body.decode())
        self.assertTrue(imbalances and all(1 <= float(ratio) <= 16 for ratio in imbalances), imbalances)


class Chat(unittest.TestCase):
    def test_answers(self):
        for path in ("/v1/chat/completions", "/chat/completions", "/beta/chat/completions"):
            status, reply = server.post(path, chat(FRANCE, model="deepseek-chat"))
            self.assertEqual(status, 200, reply)
            self.assertEqual(reply["object"], "chat.completion")
            self.assertEqual(reply["model"], "deepseek-chat")
            self.assertRegex(reply["id"], "^chatcmpl-")
            choice = reply["choices"][0]
            self.assertEqual(choice["message"], {"role": "assistant", "content": PARIS})
            self.assertEqual((choice["index"], choice["finish_reason"], choice["logprobs"]), (0, "stop", None))

    def test_streams_the_same(self):
        status, found = server.stream("/v1/chat/completions", chat(FRANCE, stream=True))
        chunks = deltas(found)
        self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual(chunks[-1]["choices"][0]["delta"], {})
        self.assertGreater(len(chunks), 2)  # pieces that are ready together may come as one
        self.assertEqual(len({chunk["id"] for chunk in chunks}), 1)
        message = joined(chunks)
        self.assertEqual((message["role"], message["content"], message["finish"]), ("assistant", PARIS, "stop"))

    # C041: usage missing, or sent when not asked for.
    def test_a_stream_has_usage_only_when_it_was_asked_for(self):
        body = chat(FRANCE, stream=True)
        plain = server.post("/v1/chat/completions", chat(FRANCE))[1]["usage"]
        chunks = deltas(server.stream("/v1/chat/completions", {**body, "stream_options": {"include_usage": True}})[1])
        self.assertEqual(chunks[-1]["choices"], [])
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], plain["completion_tokens"])
        self.assertTrue(all(chunk["usage"] is None for chunk in chunks[:-1]))
        for options in ({}, None):
            chunks = deltas(server.stream("/v1/chat/completions", {**body, "stream_options": options})[1])
            self.assertTrue(all("usage" not in chunk for chunk in chunks))
            self.assertTrue(all(chunk["choices"] for chunk in chunks))

    # C043: cached token count too high.
    def test_counts_cached_tokens_in_the_fields_of_both_apis(self):
        text = "Tell me a story about a bear and a fox. " * 20 + "Once, near the river"
        first, second = (server.post("/v1/chat/completions", chat(text, max_tokens=2))[1]["usage"] for _ in range(2))
        for usage, is_warm in ((first, False), (second, True)):
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            self.assertEqual(cached, usage["prompt_cache_hit_tokens"])
            self.assertEqual(cached + usage["prompt_cache_miss_tokens"], usage["prompt_tokens"])
            self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
            self.assertEqual(cached > 0, is_warm)
            self.assertLess(cached, usage["prompt_tokens"])

    def test_gives_several_answers(self):
        body = chat("Tell me a story about a cat.", n=3, temperature=1, seed=5, max_tokens=12)
        plain = server.post("/v1/chat/completions", body)[1]
        texts = [choice["message"]["content"] for choice in plain["choices"]]
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual(plain["usage"]["completion_tokens"], 36)
        chunks = deltas(server.stream("/v1/chat/completions", {**body, "stream": True})[1])
        self.assertEqual([joined(chunks, index)["content"] for index in range(3)], texts)
        self.assertEqual(joined(chunks, 2)["finish"], "length")

    def test_a_seed_decides(self):
        body = {"temperature": 1.5, "max_tokens": 12}
        once, again, other = (server.ask("Tell me a story about a cat.", seed=seed, **body) for seed in (7, 7, 8))
        self.assertEqual(once, again)
        self.assertNotEqual(once, other)

    # C021: limit reached while thinking: empty answer called "stop".
    def test_a_limit_while_thinking_is_told(self):
        choice = server.post("/v1/chat/completions", chat(
            "What is 7 + 5?", max_tokens=5, thinking={"type": "enabled"}))[1]["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertTrue(choice["message"]["reasoning_content"])
        self.assertFalse(choice["message"]["content"])

    def test_thinks_when_asked_in_any_of_the_ways(self):
        ways = ({"thinking": {"type": "enabled"}}, {"reasoning_effort": "high"}, {"model": "deepseek-reasoner"},
                {"chat_template_kwargs": {"thinking": True}})
        for way in ways:
            message = server.post("/v1/chat/completions", chat("What is 7 + 5?", **way))[1]["choices"][0]["message"]
            self.assertEqual(message["reasoning_content"], "I start with 7 and add 5. The result is 11.", way)
            self.assertEqual(message["content"], "7 + 5 = 11.")
        usage = server.post("/v1/chat/completions", chat("What is 7 + 5?", **ways[0]))[1]["usage"]
        self.assertGreater(usage["completion_tokens_details"]["reasoning_tokens"], 5)
        body = chat("What is 7 + 5?", stream=True, **ways[0])
        message = joined(deltas(server.stream("/v1/chat/completions", body)[1]))
        self.assertEqual(message["reasoning"], "I start with 7 and add 5. The result is 11.")
        self.assertEqual(message["content"], "7 + 5 = 11.")
        for way in ({"thinking": {"type": "disabled"}, "model": "deepseek-reasoner"}, {"reasoning_effort": "none"}):
            message = server.post("/v1/chat/completions", chat("What is 7 + 5?", **way))[1]["choices"][0]["message"]
            self.assertNotIn("reasoning_content", message)

    def test_closes_reasoning_at_its_budget(self):
        thinking = {"type": "enabled", "budget_tokens": 4}
        reply = server.post("/v1/chat/completions", chat("What is 7 + 5?", thinking=thinking))[1]
        message = reply["choices"][0]["message"]
        self.assertTrue("I start with 7 and add 5.".startswith(message["reasoning_content"]), message)
        self.assertTrue(message["content"])
        self.assertEqual(reply["choices"][0]["finish_reason"], "stop")
        self.assertLessEqual(reply["usage"]["completion_tokens_details"]["reasoning_tokens"], 5)

    # C013: old reasoning is sent back to the model.
    def test_old_reasoning_costs_nothing(self):
        turns = [{"role": "user", "content": "What is 1 + 1?"}, {"role": "assistant", "content": "1 + 1 = 2."},
                 {"role": "user", "content": FRANCE}]
        before = server.post("/v1/chat/completions", chat(turns))[1]
        turns[1]["reasoning_content"] = "I start with 1 and add 1. " * 50
        after = server.post("/v1/chat/completions", chat(turns))[1]
        self.assertEqual(before["usage"]["prompt_tokens"], after["usage"]["prompt_tokens"])
        self.assertEqual(before["choices"], after["choices"])

    def test_stops_at_strings_tokens_and_limits(self):
        self.assertEqual(server.ask(FRANCE, stop=" Paris"), "The capital of France is")
        self.assertEqual(server.ask(FRANCE, stop=["nothing", "France"]), "The capital of ")
        self.assertEqual(server.ask(FRANCE, stop=None), PARIS)
        ids = server.post("/tokenize", {"prompt": PARIS})[1]["tokens"]
        self.assertEqual(server.ask(FRANCE, stop_token_ids=[ids[-1]]), PARIS[:-1])
        for field in ("max_tokens", "max_completion_tokens"):
            reply = server.post("/v1/chat/completions", chat(FRANCE, **{field: 3}))[1]
            self.assertEqual(reply["choices"][0]["finish_reason"], "length")
            self.assertEqual(reply["usage"]["completion_tokens"], 3)
        self.assertEqual(server.ask(FRANCE, ignore_eos=True, max_tokens=40)[:len(PARIS)], PARIS)

    # C038: the first token is the stop.
    def test_an_answer_may_be_empty(self):
        reply = server.post("/v1/chat/completions", chat(FRANCE, stop="The"))[1]
        self.assertEqual(reply["choices"][0]["message"]["content"], "")
        self.assertEqual(reply["choices"][0]["finish_reason"], "stop")

    # C054: penalties or bias ignored when greedy.
    def test_bias_acts_on_the_greedy_choice(self):
        first = server.post("/tokenize", {"prompt": PARIS})[1]["tokens"][0]
        biased = server.ask(FRANCE, logit_bias={str(first): -100}, max_tokens=8)
        self.assertFalse(biased.startswith("The "))
        self.assertNotEqual(server.ask("List two animals.", presence_penalty=2, frequency_penalty=2),
                            server.ask("List two animals.", presence_penalty=-2))

    def test_filters_act(self):
        greedy = server.ask("Tell me a story about a cat.", max_tokens=12)
        for only_best in ({"top_k": 1}, {"top_p": 0}, {"min_p": 1}):
            self.assertEqual(server.ask("Tell me a story about a cat.", max_tokens=12, **{"temperature": 2, **only_best}),
                             greedy)

    # C046, C047: bytes and values of log-probabilities.
    def test_logprobs_spell_the_answer(self):
        for text in (FRANCE, "你好"):
            plain = server.post("/v1/chat/completions", chat(text, logprobs=True, top_logprobs=3))[1]["choices"][0]
            entries = plain["logprobs"]["content"]
            spelled = bytes(byte for entry in entries for byte in entry["bytes"])
            self.assertEqual(spelled.decode(), plain["message"]["content"])
            for entry in entries:
                self.assertEqual(len(entry["top_logprobs"]), 3)
                self.assertIn(entry["token"], [top["token"] for top in entry["top_logprobs"]])
                self.assertLessEqual(entry["logprob"], 0)
            body = chat(text, logprobs=True, top_logprobs=3, stream=True)
            streamed = [entry for chunk in deltas(server.stream("/v1/chat/completions", body)[1])
                        for choice in chunk["choices"] for entry in (choice["logprobs"] or {}).get("content", [])]
            self.assertEqual(streamed, entries)

    def test_logprobs_leave_out_what_a_stop_cut_off(self):
        choice = server.post("/v1/chat/completions", chat(FRANCE, logprobs=True, stop=" Paris"))[1]["choices"][0]
        spelled = bytes(byte for entry in choice["logprobs"]["content"] for byte in entry["bytes"])
        self.assertEqual(spelled.decode(), "The capital of France is")

    def test_logprobs_of_reasoning_stand_apart(self):
        choice = server.post("/v1/chat/completions", chat(
            "What is 7 + 5?", logprobs=True, thinking={"type": "enabled"}))[1]["choices"][0]
        for field, text in (("content", choice["message"]["content"]),
                            ("reasoning_content", choice["message"]["reasoning_content"])):
            spelled = bytes(byte for entry in choice["logprobs"][field] for byte in entry["bytes"])
            self.assertEqual(spelled.decode(), text)

    # C045: a log-probability of minus infinity.
    def test_json_mode_gives_json_with_finite_logprobs(self):
        choice = server.post("/v1/chat/completions", chat(
            "Give me JSON for Kira, who is curious, is 40 years old and has a fox.", logprobs=True, top_logprobs=5,
            response_format={"type": "json_object"}))[1]["choices"][0]
        self.assertEqual(json.loads(choice["message"]["content"])["pet"], "fox")
        self.assertEqual(choice["finish_reason"], "stop")

    def test_json_mode_holds_an_answer_that_would_be_none(self):
        for thinking in ("disabled", "enabled"):
            for seed in range(3):
                reply = server.post("/v1/chat/completions", chat(
                    "Tell me a story about a cat.", response_format={"type": "json_object"}, max_tokens=120,
                    temperature=1, seed=seed, thinking={"type": thinking}))[1]
                choice = reply["choices"][0]
                if choice["finish_reason"] == "stop":
                    self.assertIsInstance(json.loads(choice["message"]["content"]), dict)
                else:
                    self.assertEqual(choice["message"]["content"][:1], "{", "what a limit cut off began as JSON")

    def test_continues_a_prefix(self):
        turns = [{"role": "user", "content": FRANCE}, {"role": "assistant", "content": "The capital of", "prefix": True}]
        status, reply = server.post("/beta/chat/completions", chat(turns))
        self.assertEqual(reply["choices"][0]["message"]["content"], " France is Paris.")

    # C048, C049: longer than the context.
    def test_a_prompt_beyond_the_context_is_told_with_both_numbers(self):
        limit = server.get("/v1/models/tiny")[1]["max_model_len"]
        one = server.post("/v1/completions", {"prompt": [50] * (limit - 1)})
        self.assertEqual(one[0], 200)
        self.assertEqual(one[1]["choices"][0]["finish_reason"], "length")
        self.assertEqual(one[1]["usage"]["completion_tokens"], 1)
        for stream in (False, True):
            status, reply = server.post("/v1/completions", {"prompt": [50] * limit, "stream": stream})
            self.assertEqual(status, 400)
            self.assertEqual(reply["error"]["message"].count(str(limit)), 2)
            self.assertNotIn("-", reply["error"]["message"])


class Tools(unittest.TestCase):
    BOTH = "Please add 957 and 580. Please add 365 and 664."

    def test_calls_and_goes_on_with_the_results(self):
        turns = [{"role": "user", "content": self.BOTH}]
        choice = server.post("/v1/chat/completions", chat(turns, tools=[ADD, WEATHER]))[1]["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        calls = choice["message"]["tool_calls"]
        self.assertEqual([call["function"]["arguments"] for call in calls],
                         ['{"a": 957, "b": 580}', '{"a": 365, "b": 664}'])
        self.assertEqual(len({call["id"] for call in calls}), 2)
        results = [{"role": "tool", "tool_call_id": calls[0]["id"], "content": '{"sum": 1537}'},
                   {"role": "tool", "tool_call_id": calls[1]["id"], "content": '{"sum": 1029}'}]
        answer = "The sum of 957 and 580 is 1537. The sum of 365 and 664 is 1029."
        for order in (results, results[::-1]):
            self.assertEqual(server.ask(turns + [choice["message"]] + order, tools=[ADD, WEATHER]), answer)

    # C026, C027: indices, ids and the finish reason of streamed calls.
    def test_streams_calls(self):
        body = chat(self.BOTH, tools=[ADD, WEATHER], stream=True)
        message = joined(deltas(server.stream("/v1/chat/completions", body)[1]))
        self.assertEqual(message["finish"], "tool_calls")
        self.assertEqual([call["name"] for call in message["calls"]], ["add_numbers"] * 2)
        self.assertEqual([call["arguments"] for call in message["calls"]],
                         ['{"a": 957, "b": 580}', '{"a": 365, "b": 664}'])

    def test_one_call_at_a_time_when_asked(self):
        for stream in (False, True):
            body = chat(self.BOTH, tools=[ADD], parallel_tool_calls=False, stream=stream)
            if stream:
                message = joined(deltas(server.stream("/v1/chat/completions", body)[1]))
                calls, finish = message["calls"], message["finish"]
            else:
                choice = server.post("/v1/chat/completions", body)[1]["choices"][0]
                calls, finish = choice["message"]["tool_calls"], choice["finish_reason"]
            self.assertEqual((len(calls), finish), (1, "tool_calls"))

    def test_tool_choice_decides(self):
        def calls(**fields):
            choice = server.post("/v1/chat/completions", chat(tools=[ADD, WEATHER], max_tokens=60, **fields))[1]
            return [call["function"]["name"] for call in choice["choices"][0]["message"].get("tool_calls", [])]
        add = "Please add 957 and 580."
        self.assertEqual(calls(text=add), ["add_numbers"])
        self.assertEqual(calls(text=add, tool_choice="none"), [])
        named = {"type": "function", "function": {"name": "get_weather"}}
        self.assertEqual(calls(text=add, tool_choice=named)[:1], ["get_weather"])
        self.assertTrue(calls(text=FRANCE, tool_choice="required"))
        self.assertEqual(calls(text=FRANCE), [])

    def test_no_call_without_tools(self):
        forced = server.post("/v1/chat/completions", chat("Please add 957 and 580.", max_tokens=40))[1]
        self.assertNotIn("tool_calls", forced["choices"][0]["message"])


class Completions(unittest.TestCase):
    PROMPT = "<｜User｜>" + FRANCE + "<｜Assistant｜></think>"

    def test_continues_text_and_ids(self):
        ids = server.post("/tokenize", {"prompt": self.PROMPT, "specials": True, "add_special_tokens": True})[1]["tokens"]
        for prompt in (self.PROMPT, ids, [self.PROMPT, self.PROMPT]):
            reply = server.post("/v1/completions", {"prompt": prompt, "temperature": 0})[1]
            self.assertEqual(reply["object"], "text_completion")
            for choice in reply["choices"]:
                self.assertEqual((choice["text"], choice["finish_reason"]), (PARIS, "stop"))
        self.assertEqual([choice["index"] for choice in reply["choices"]], [0, 1])

    def test_streams_the_same(self):
        body = {"prompt": [self.PROMPT, "Once upon a"], "temperature": 0, "stream": True, "echo": True, "n": 2,
                "stream_options": {"include_usage": True}}
        found = deltas(server.stream("/v1/completions", body)[1])
        plain = server.post("/v1/completions", {**body, "stream": False, "stream_options": None})[1]
        for index in range(4):
            text = "".join(choice["text"] for chunk in found for choice in chunk["choices"] if choice["index"] == index)
            self.assertEqual(text, plain["choices"][index]["text"])
        self.assertEqual(plain["choices"][1]["text"], self.PROMPT + PARIS)
        self.assertTrue(plain["choices"][2]["text"].startswith("Once upon a"))
        self.assertEqual(found[-1]["usage"]["completion_tokens"], plain["usage"]["completion_tokens"])

    def test_fills_in_the_middle(self):
        prompt, suffix = "There was once a red fox who lived by the market. One day, the", " the river."
        reply = server.post("/beta/completions", {"prompt": prompt, "suffix": suffix, "max_tokens": 20, "temperature": 0})[1]
        rendered = f"<｜fim▁begin｜>{prompt}<｜fim▁hole｜>{suffix}<｜fim▁end｜>"
        by_hand = server.post("/v1/completions", {"prompt": rendered, "max_tokens": 20, "temperature": 0})[1]
        self.assertEqual(reply["choices"][0]["text"], by_hand["choices"][0]["text"])
        self.assertTrue(reply["choices"][0]["text"])
        without = server.post("/beta/completions", {"prompt": prompt, "max_tokens": 20, "temperature": 0})[1]
        self.assertNotEqual(reply["usage"]["prompt_tokens"], without["usage"]["prompt_tokens"])

    def test_gives_logprobs(self):
        choice = server.post("/v1/completions", {"prompt": self.PROMPT, "temperature": 0, "logprobs": 2})[1]["choices"][0]
        logprobs = choice["logprobs"]
        self.assertEqual("".join(logprobs["tokens"]), PARIS)
        self.assertEqual(logprobs["text_offset"][:2], [0, len(logprobs["tokens"][0])])
        self.assertTrue(all(len(top) == 2 for top in logprobs["top_logprobs"]))
        self.assertTrue(all(value <= 0 for value in logprobs["token_logprobs"]))


class Texts(unittest.TestCase):
    def test_tokenizes_there_and_back(self):
        for text in ("Füße über Öl", "12345678901", "你好 <｜User｜>"):
            ids = server.post("/tokenize", {"prompt": text})[1]
            self.assertEqual(ids["count"], len(ids["tokens"]))
            self.assertEqual(server.post("/detokenize", {"tokens": ids["tokens"]})[1]["prompt"], text)
        chatted = server.post("/tokenize", chat(FRANCE))[1]
        usage = server.post("/v1/chat/completions", chat(FRANCE))[1]["usage"]
        self.assertEqual(chatted["count"], usage["prompt_tokens"])

    def test_renders_a_request(self):
        reply = server.post("/render", chat(FRANCE))[1]
        self.assertEqual(reply["prompt"], "<｜begin▁of▁sentence｜><｜User｜>" + FRANCE + "<｜Assistant｜></think>")
        self.assertEqual(reply["tokens"][0], 0)
        self.assertIn("### add_numbers", server.post("/render", chat(FRANCE, tools=[ADD]))[1]["prompt"])


if __name__ == "__main__":
    unittest.main()
