#!/usr/bin/env bash
# test_neon.sh [BUILD] - cross-builds all that is installed and the tests of the kernels for 64-bit ARM, and runs these under
# qemu-aarch64; skipped, and said to be, where the tools for it are missing.
#
# The long tests do a PCCL_TEST_SCALE-th of their work.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=${1:-build/neon}
cc=aarch64-linux-gnu-gcc
for tool in $cc qemu-aarch64; do
    if ! command -v $tool >/dev/null; then
        echo "SKIPPED: $tool is not there (apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"
        exit 0
    fi
done
export PCCL_TEST_SCALE=${PCCL_TEST_SCALE:-50} QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
scripts/build.sh "$build" "pccl_product tests_kernel" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=$cc &&
    scripts/run_tests.sh -j "$(nproc)" -r qemu-aarch64 "$build" tests/kernel
