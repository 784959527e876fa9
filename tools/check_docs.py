#!/usr/bin/env python3
"""Every file and folder that README.md, CONTRIBUTING.md and docs/ name exists. Exit code 1 with one line for each that does not."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = re.compile(r"`([^`\n]+)`")
# Folders and files as the pages write them: with a slash or a known ending, no blanks, no placeholder.
PATH = re.compile(r"^[\w.+-]+(?:/[\w.+*-]+)*/?$")
ENDINGS = (".h", ".cc", ".py", ".sh", ".md", ".json", ".txt")
# Of a model's folder or of a build, not of the tree.
ELSEWHERE = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "container_files.json",
             "model.safetensors.index.json", "held.json", "F.json",
             "checksums.json", ".json"}


def candidates(name):
    """Pages leave out src/ and endings: `formats/checkpoint.h`, `added_tokens`."""
    for base in ("", "src/", "src/text/", "src/engine/", "src/sched/", "src/cache/", "docs/"):
        yield base + name


def exists(name):
    if "*" in name:
        return any(any(ROOT.glob(path)) for path in candidates(name))
    if "/" not in name and any((ROOT / "src").glob("**/" + name)):  # the text around it says which folder
        return True
    return any((ROOT / path).exists() for path in candidates(name))


def is_path(text):
    if not PATH.match(text) or text in ELSEWHERE or text.startswith(("build/", "application/")):
        return False
    return text.endswith(ENDINGS) or text.startswith(("src/", "tests/", "docs/", "fuzz/", "bench/", "tools/", "models/"))


def main():
    missing = []
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    for page in pages:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for name in CODE.findall(line):
                if is_path(name) and not exists(name):
                    missing.append(f"{page.relative_to(ROOT)}:{number}: {name} does not exist")
    print("\n".join(missing) if missing else f"{len(pages)} pages: every path exists")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
