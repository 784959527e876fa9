#!/usr/bin/env python3
"""hadal serve: the APIs of Anthropic and of OpenAI's responses, on the bundled model."""
import json
import unittest

from served import Server

PARIS = "The capital of France is Paris."
FRANCE = "What is the capital of France?"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
BOTH = "Please add 957 and 580. Please add 365 and 664."
SUMS = "The sum of 957 and 580 is 1537. The sum of 365 and 664 is 1029."


def setUpModule():
    global server
    server = Server("--quiet")


def tearDownModule():
    assert server.close() == 0, server.errors


class Messages(unittest.TestCase):
    TOOL = {"name": "add_numbers", "description": "Add two numbers.", "input_schema": SCHEMA}

    def body(self, content, **fields):
        turns = content if isinstance(content, list) else [{"role": "user", "content": content}]
        return {"model": "tiny", "max_tokens": 100, "temperature": 0, "messages": turns, **fields}

    def ask(self, content, **fields):
        status, reply = server.post("/v1/messages", self.body(content, **fields))
        self.assertEqual(status, 200, reply)
        return reply

    def streamed(self, content, **fields):
        """The message as a client puts it together; the order of events is checked."""
        status, found = server.stream("/v1/messages", self.body(content, stream=True, **fields))
        self.assertEqual(status, 200, found)
        message, blocks, open_block = None, [], None
        for name, data in found:
            event = json.loads(data)
            self.assertEqual(name, event["type"])
            if name == "message_start":
                message = event["message"]
            elif name == "content_block_start":
                self.assertIsNone(open_block)
                self.assertEqual(event["index"], len(blocks))
                open_block = event["content_block"]
                open_block["json"] = ""
            elif name == "content_block_delta":
                self.assertEqual(event["index"], len(blocks))
                delta = event["delta"]
                if delta["type"] == "text_delta":
                    open_block["text"] += delta["text"]
                elif delta["type"] == "thinking_delta":
                    open_block["thinking"] += delta["thinking"]
                elif delta["type"] == "input_json_delta":
                    open_block["json"] += delta["partial_json"]
            elif name == "content_block_stop":
                text = open_block.pop("json")
                if text:
                    open_block["input"] = json.loads(text)
                blocks.append(open_block)
                open_block = None
            elif name == "message_delta":
                message.update(event["delta"])
                message["usage"] = event["usage"]
        self.assertEqual(found[-1][0], "message_stop")
        message["content"] = blocks
        return message

    def check_same(self, content, **fields):
        plain, streamed = self.ask(content, **fields), self.streamed(content, **fields)
        for message in (plain, streamed):
            message.pop("id")
            message.pop("usage")
            for block in message["content"]:
                block.pop("id", None)
        self.assertEqual(streamed, plain)
        return plain

    def test_answers(self):
        reply = self.ask(FRANCE)
        self.assertEqual(reply["content"], [{"type": "text", "text": PARIS}])
        self.assertEqual((reply["type"], reply["role"], reply["stop_reason"]), ("message", "assistant", "end_turn"))
        self.check_same(FRANCE)
        self.check_same([{"role": "user", "content": [{"type": "text", "text": FRANCE, "cache_control": {"type": "ephemeral"}}]}])

    def test_takes_a_system_text(self):
        self.assertTrue(self.ask("List two animals.", system="Answer briefly.")["content"])
        blocks = [{"type": "text", "text": "Answer "}, {"type": "text", "text": "briefly."}]
        counts = [server.post("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "x"}], "system": s})
                  for s in ("Answer briefly.", blocks, "")]
        self.assertEqual(counts[0], counts[1])
        self.assertGreater(counts[0][1]["input_tokens"], counts[2][1]["input_tokens"])

    def test_counts_tokens_as_it_uses_them(self):
        usage = self.ask(FRANCE)["usage"]
        count = server.post("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": FRANCE}]})[1]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], count["input_tokens"])
        self.assertGreater(usage["output_tokens"], 3)

    def test_thinks(self):
        for thinking in ({"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}):
            message = self.check_same(
                "What is 7 + 5?", thinking=thinking, output_config={"effort": "medium"},
                context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]})
            self.assertEqual([block["type"] for block in message["content"]], ["thinking", "text"])
            self.assertEqual(message["content"][0]["thinking"], "I start with 7 and add 5. The result is 11.")
        self.assertEqual(self.ask("What is 7 + 5?", thinking={"type": "disabled"})["content"][0]["type"], "text")

    def test_calls_tools_and_goes_on_with_the_results(self):
        message = self.check_same(BOTH, tools=[self.TOOL])
        self.assertEqual(message["stop_reason"], "tool_use")
        self.assertEqual([block["input"] for block in message["content"]], [{"a": 957, "b": 580}, {"a": 365, "b": 664}])
        calls = self.ask(BOTH, tools=[self.TOOL])["content"]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": json.dumps({"sum": value})}
                   for call, value in zip(calls, (1537, 1029))]
        turns = [{"role": "user", "content": BOTH}, {"role": "assistant", "content": calls}]
        for order in (results, results[::-1]):
            reply = self.ask([*turns, {"role": "user", "content": order}], tools=[self.TOOL])
            self.assertEqual(reply["content"][0]["text"], SUMS)

    def test_tool_choice_decides(self):
        def names(**choice):
            reply = self.ask("Please add 957 and 580.", tools=[self.TOOL], tool_choice=choice)
            return [block["name"] for block in reply["content"] if block["type"] == "tool_use"]
        self.assertEqual(names(type="auto"), ["add_numbers"])
        self.assertEqual(names(type="none"), [])
        self.assertTrue(names(type="any"))
        self.assertTrue(names(type="tool", name="add_numbers"))
        once = self.ask(BOTH, tools=[self.TOOL], tool_choice={"type": "auto", "disable_parallel_tool_use": True})
        self.assertEqual((len(once["content"]), once["stop_reason"]), (1, "tool_use"))

    def test_names_the_stop(self):
        reply = self.check_same(FRANCE, stop_sequences=["zzz", " Paris"])
        self.assertEqual((reply["stop_reason"], reply["stop_sequence"]), ("stop_sequence", " Paris"))
        self.assertEqual(self.ask(FRANCE, max_tokens=2)["stop_reason"], "max_tokens")

    def test_continues_what_was_begun(self):
        turns = [{"role": "user", "content": FRANCE}, {"role": "assistant", "content": "The capital of"}]
        self.assertEqual(self.ask(turns)["content"][0]["text"], " France is Paris.")

    def test_errors_are_in_its_form(self):
        status, reply = server.post("/v1/messages", {"messages": []})
        self.assertEqual((status, reply["type"], reply["error"]["type"]), (400, "error", "invalid_request_error"))
        status, reply = server.post("/v1/messages/nothing", {})
        self.assertEqual((status, reply["error"]["type"]), (404, "not_found_error"))


class Responses(unittest.TestCase):
    TOOL = {"type": "function", "name": "add_numbers", "description": "Add two numbers.", "parameters": SCHEMA}

    def ask(self, input, **fields):
        status, reply = server.post("/v1/responses", {"input": input, "temperature": 0, **fields})
        self.assertEqual(status, 200, reply)
        return reply

    def streamed(self, input, **fields):
        status, found = server.stream("/v1/responses", {"input": input, "temperature": 0, "stream": True, **fields})
        self.assertEqual(status, 200, found)
        events = [json.loads(data) for _, data in found]
        self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
        self.assertEqual([event["type"] for event in events[:2]], ["response.created", "response.in_progress"])
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        for item in done:
            key = {"message": "output_text", "reasoning": "reasoning_text", "function_call": "function_call_arguments"}
            text = "".join(event["delta"] for event in events if event["type"] == f"response.{key[item['type']]}.delta"
                           and event["item_id"] == item["id"])
            whole = item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]
            self.assertEqual(text, whole)
        response = events[-1]["response"]
        self.assertEqual(events[-1]["type"], f"response.{response['status']}")
        self.assertEqual(done, response["output"])
        return response

    def check_same(self, input, **fields):
        plain, streamed = self.ask(input, **fields), self.streamed(input, **fields)
        for response in (plain, streamed):
            for field in ("id", "created_at", "usage"):
                response.pop(field)
            for item in response["output"]:
                item.pop("id")
                item.pop("call_id", None)
        self.assertEqual(streamed, plain)
        return plain

    def test_answers(self):
        reply = self.check_same(FRANCE, instructions="Answer briefly.")
        self.assertEqual((reply["object"], reply["status"], reply["error"]), ("response", "completed", None))
        self.assertEqual(reply["output"][0]["content"][0]["text"], PARIS)
        items = [{"role": "developer", "content": "Answer briefly."},
                 {"type": "message", "role": "user", "content": [{"type": "input_text", "text": FRANCE}]}]
        self.assertEqual(self.check_same(items)["output"], reply["output"])

    def test_tells_a_limit(self):
        reply = self.check_same(FRANCE, max_output_tokens=2)
        self.assertEqual((reply["status"], reply["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))

    def test_thinks(self):
        reply = self.check_same("What is 7 + 5?", reasoning={"effort": "high"})
        self.assertEqual([item["type"] for item in reply["output"]], ["reasoning", "message"])
        self.assertGreater(self.ask("What is 7 + 5?", reasoning={"effort": "high"})
                           ["usage"]["output_tokens_details"]["reasoning_tokens"], 5)

    def test_calls_tools_and_goes_on_with_the_results(self):
        self.check_same(BOTH, tools=[self.TOOL])
        calls = self.ask(BOTH, tools=[self.TOOL])["output"]
        self.assertEqual([json.loads(call["arguments"]) for call in calls], [{"a": 957, "b": 580}, {"a": 365, "b": 664}])
        results = [{"type": "function_call_output", "call_id": call["call_id"], "output": json.dumps({"sum": value})}
                   for call, value in zip(calls, (1537, 1029))]
        reply = self.ask([{"role": "user", "content": BOTH}, *calls, *results], tools=[self.TOOL])
        self.assertEqual(reply["output"][0]["content"][0]["text"], SUMS)

    def test_gives_logprobs(self):
        part = self.ask(FRANCE, include=["message.output_text.logprobs"], top_logprobs=2)["output"][0]["content"][0]
        self.assertEqual("".join(entry["token"] for entry in part["logprobs"]), PARIS)
        self.check_same(FRANCE, include=["message.output_text.logprobs"], top_logprobs=2)


if __name__ == "__main__":
    unittest.main()
