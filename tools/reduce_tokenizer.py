#!/usr/bin/env python3
"""Cuts a tokenizer.json down to what some texts need, with the ids of the whole: data for tests.

usage: reduce_tokenizer.py TOKENIZER.json TEXTS.json OUT.json     (TEXTS.json: a list of strings)

A pair of neighbours that is ever looked up while a text is merged is a substring of that text. So the words and merges
whose bytes occur in some text, and the single bytes, give the same ids as the whole file, in the same order of ranks.
Added tokens are kept, but of long numbered families (placeholders, padding) only the first and those in a text.
"""
import json
import re
import sys


def byte_alphabet():
    """Character of the byte-level alphabet -> byte (specification, 9.1)."""
    itself = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    others = [b for b in range(256) if b not in itself]
    return {**{chr(b): b for b in itself}, **{chr(0x100 + i): b for i, b in enumerate(others)}}


def main():
    source, texts_path, out_path = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        data = json.load(file)
    with open(texts_path, encoding="utf-8") as file:
        haystack = b"\xff".join(text.encode() for text in json.load(file))
    alphabet = byte_alphabet()

    def is_needed(spelling):
        if len(spelling) == 1:
            return True
        return all(c in alphabet for c in spelling) and bytes(alphabet[c] for c in spelling) in haystack

    model = data["model"]
    added = {token["content"] for token in data["added_tokens"]}
    model["vocab"] = {word: id for word, id in model["vocab"].items() if word in added or is_needed(word)}
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    model["merges"] = [" ".join(pair) for pair in pairs if is_needed("".join(pair))]
    numbered = re.compile(r"(place▁holder▁no▁|PAD)[1-9]\d*")
    data["added_tokens"] = [
        t for t in data["added_tokens"] if not numbered.search(t["content"]) or t["content"].encode() in haystack]
    with open(out_path, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")
    print(f"{len(model['vocab'])} words, {len(model['merges'])} merges, {len(data['added_tokens'])} added tokens")


if __name__ == "__main__":
    main()
