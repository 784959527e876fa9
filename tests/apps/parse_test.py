"""hadal parse, end to end."""
import json
import unittest

from hadal_command import GOLDEN, run


def lines_of(name):
    return [json.loads(line) for line in (GOLDEN / "chat" / name).read_text(encoding="utf-8").splitlines()]


def run_lines(*args, lines):
    done = run(*args, "--json", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def joined(deltas):
    result = {"reasoning": "", "content": "", "tool_calls": []}
    for delta in deltas:
        (key, value), = delta.items()
        if key != "tool_calls":
            result[key] += value
            continue
        call, = value
        if "name" in call:
            assert call["index"] == len(result["tool_calls"])
            result["tool_calls"].append({"name": call["name"], "arguments": ""})
        else:
            result["tool_calls"][call["index"]]["arguments"] += call["arguments"]
    return result


class Parse(unittest.TestCase):
    def test_parses_every_oracle_cut_everywhere(self):
        for line in lines_of("parse_v32.jsonl"):
            text, starts = line["text"], line["starts_in_reasoning"]
            cuts = [[text], list(text)] + [[text[:i], text[i:]] for i in range(len(text))]
            answers = run_lines("parse", "--layout", "v3.2",
                                lines=[{"chunks": chunks, "starts_in_reasoning": starts} for chunks in cuts])
            self.assertEqual(len(answers), len(cuts))
            for answer in answers:
                whole = joined(answer["deltas"])
                self.assertEqual(whole, {key: answer[key] for key in whole})
                for call in answer["tool_calls"]:
                    call["arguments"] = json.loads(call["arguments"])
                self.assertEqual({key: answer[key] for key in whole}, line["expect"])

    def test_needs_no_model_when_the_layout_is_named(self):
        done = run("parse", "/nonexistent", "--layout", "r1", "--json", stdin='{"chunks": ["<think>a</think>b"]}\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["reasoning"], answer["content"]), ("a", "b"))

    def test_takes_the_layout_of_the_bundled_model(self):
        call = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        answer, = run_lines("parse", lines=[{"chunks": [call]}])
        self.assertEqual(answer["tool_calls"], [{"name": "f", "arguments": "{}"}])

    def test_names_the_line_of_a_fault(self):
        for bad, words in [("[]", "chunks: expected a list"), ('{"chunks": [1]}', "chunks[0]: expected a string"),
                           ('{"chunks": [], "starts_in_reasoning": "no"}', "starts_in_reasoning"), ("x", "JSON")]:
            done = run("parse", "--layout", "v3", "--json", stdin='{"chunks": []}\n\n' + bad + "\n")
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn("standard input: line 3: ", done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
