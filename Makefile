# Short front of CMake: each target does its own set-up.
# SPDX-License-Identifier: MIT
BUILD ?= build
PREFIX ?= /usr/local

all: setup
	@cmake -S . -B $(BUILD) -G Ninja
	@cmake --build $(BUILD)

setup:
	@scripts/setup.sh build

demo: all
	@scripts/demo.sh $(BUILD) $(if $(TEXT),"$(TEXT)")

check:
	@scripts/setup.sh check
	@scripts/check.sh

bench: all
	@scripts/bench.sh $(BUILD)

verify:
	@scripts/setup.sh verify
	@python3 scripts/verify.py

fuzz:
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf $(BUILD)

.PHONY: all setup demo check bench verify fuzz install clean
