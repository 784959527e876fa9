# The two commands of a newcomer are `make run` and `make test`; both install what is missing (Debian 12, apt-get).
PROMPT ?= What is the capital of France?

.PHONY: help run test build setup-build setup-test format

help:
	@echo "make run     set up, build, and let the bundled model answer a prompt (PROMPT=...)"
	@echo "make test    set up, build, and run all tests"
	@echo "make build   set up and build the binary build/release/hadal"
	@echo "make format  format all C++ sources"

run: build
	@echo "hadal run -p '$(PROMPT)'"
	@build/release/hadal run -p '$(PROMPT)'

build: setup-build
	@echo "Building build/release/hadal"
	@cmake --preset release -DHADAL_BUILD_TESTS=OFF >/dev/null
	@cmake --build --preset release --target hadal

test: setup-test
	@echo "Building build/release/hadal and its tests"
	@cmake --preset release -DHADAL_BUILD_TESTS=ON >/dev/null
	@cmake --build --preset release
	@echo "Running the tests"
	@ctest --preset release

setup-build:
	@tools/setup.sh build

setup-test:
	@tools/setup.sh test

format:
	@git ls-files '*.h' '*.cc' | xargs clang-format-14 -i
