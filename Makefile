# Short front of CMake: each target does its own set-up.
# SPDX-License-Identifier: MIT
BUILD ?= build
PREFIX ?= /usr/local

configure = cmake -S . -B "$(BUILD)" -G Ninja
build = cmake --build "$(BUILD)" --target

all: setup
	@$(configure) -DCMAKE_INSTALL_PREFIX="$(PREFIX)"
	@$(build) pccl_product

setup:
	@scripts/setup.sh build

demo: all
	@$(build) pccl_examples
	@scripts/demo.sh "$(BUILD)" $(if $(TEXT),"$(TEXT)")

# What a contributor runs after each change: at most 3 minutes the first time, half a minute after that
test:
	@scripts/test.sh

check:
	@scripts/check.sh --plan
	@scripts/setup.sh check
	@scripts/check.sh

# The Python faces and torch's own suite on the newest release of torch that they are known to work with: a download of 5 GB
check-torch-newest:
	@scripts/setup.sh check
	@TORCH_RELEASE=2.15.0 scripts/test_python.sh "$(BUILD)/torch-newest"

# Time, seed and number of rounds side by side: make chaos SECONDS=600 SEED=1 JOBS=4
chaos: all
	@$(build) tests_chaos
	@"$(BUILD)/tests/chaos/chaos_run" --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) \
		$(if $(JOBS),--jobs $(JOBS)) --logs "$(BUILD)/chaos"

bench: all
	@$(build) pccl_benchmarks
	@scripts/bench.sh "$(BUILD)"

bench-kernels: all
	@$(build) bench_kernels
	@scripts/bench.sh "$(BUILD)" bench_kernels

# Ours beside Gloo, Open MPI and MPICH, which it installs: make bench-compare ROUNDS=5
bench-compare: all
	@scripts/setup.sh compare
	@$(build) bench_many
	@python3 bench/compare/compare.py "$(BUILD)" $(if $(ROUNDS),--rounds $(ROUNDS))
	@python3 bench/compare/compare_many.py "$(BUILD)"

# Ours beside plain sockets, Gloo and Open MPI in an emulated wide area; hours: make bench-wan ROUNDS=5 ROWS=64m-loss-0,cubic
bench-wan:
	@scripts/setup.sh build wan
	@$(configure)
	@$(build) pccl_product distant_sums distant_state distant_sockets
	@python3 bench/wan/distant.py "$(BUILD)" $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ROWS),--rows $(ROWS))

# torch.distributed over pccl beside Gloo, in the environment that part python of make check has made
bench-python:
	@scripts/setup.sh check
	@scripts/test_python.sh "$(BUILD)/python" --collect-only >/dev/null
	@for ranks in 2 4; do "$(BUILD)/python/full/bin/python" bench/python/torch_gloo.py --ranks $$ranks; done

# The source distribution and the wheels in build/dist, tried as those get them who have no compiler
check-wheels:
	@scripts/setup.sh wheels
	@scripts/wheels.sh
	@scripts/test_wheels.sh

# The site of all documents, the header and the Python package: build/docs/html
docs:
	@scripts/setup.sh build python
	@scripts/docs.sh

verify:
	@scripts/setup.sh verify
	@python3 scripts/verify.py

fuzz:
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh

install: all
	@scripts/install.sh "$(BUILD)"

uninstall:
	@scripts/install.sh "$(BUILD)" --remove

clean:
	rm -rf "$(BUILD)"

.PHONY: all setup demo test check check-torch-newest chaos bench bench-kernels bench-compare bench-wan bench-python check-wheels docs verify fuzz install uninstall clean
