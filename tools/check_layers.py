#!/usr/bin/env python3
"""Fails on an #include that the module's DEPS (src/*/CMakeLists.txt) do not allow, and on a cycle of modules."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# Finer than the lists: what a module may see of another.
ONLY_HEADERS = {("kernels", "tensor"): {"tensor/block_layout.h"}, ("engine", "runner"): {"runner/model_runner.h"}}
ONLY_FILES = {("kernels", "sys"): {"dispatch.cc"}}


def read_deps():
    deps = {}
    for path in sorted(SRC.glob("*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", path.read_text())
        for name, body in re.findall(r"hadal_module\((\w+)([^)]*)\)", text):
            match = re.search(r"\bDEPS\b([\w\s]*?)(?:\bLIBS\b|\bSOURCES\b|$)", body)
            deps[name] = set(match.group(1).split()) if match else set()
    return deps


def find_cycle(deps):
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        path.append(name)
        for dep in sorted(deps.get(name, ())):
            cycle = visit(dep)
            if cycle:
                return cycle
        path.pop()
        done.add(name)
        return None

    for name in sorted(deps):
        cycle = visit(name)
        if cycle:
            return cycle
    return None


def main():
    deps = read_deps()
    faults = []
    cycle = find_cycle(deps)
    if cycle:
        faults.append("cycle of modules: " + " -> ".join(cycle))
    checked = 0
    for path in sorted(p for p in SRC.rglob("*") if p.suffix in (".h", ".cc", ".cu")):
        module = path.relative_to(SRC).parts[0]
        if module == "apps":
            continue
        if module not in deps:
            faults.append(f"{path.relative_to(ROOT)}: module {module} has no hadal_module() in CMake")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            checked += 1
            header = match.group(1)
            other = header.split("/")[0]
            place = f"{path.relative_to(ROOT)}:{number}"
            if not (SRC / header).exists():
                faults.append(f"{place}: {header} is not a file of src/")
            elif other == module:
                continue
            elif (module, other) in ONLY_HEADERS and header in ONLY_HEADERS[(module, other)]:
                continue
            elif (module, other) in ONLY_HEADERS or other not in deps[module]:
                faults.append(f"{place}: {module} may not include {header}")
            elif (module, other) in ONLY_FILES and path.name not in ONLY_FILES[(module, other)]:
                faults.append(f"{place}: only {', '.join(ONLY_FILES[(module, other)])} may include {header}")
    for fault in faults:
        print(fault)
    if checked == 0:
        print("found no #include to check")
        return 1
    print(f"checked {checked} includes of {len(deps)} modules: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
