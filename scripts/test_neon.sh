#!/usr/bin/env bash
# test_neon.sh [BUILD] - cross-builds the kernels and their tests for 64-bit ARM and runs them under qemu-aarch64.
#
# Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user.  The long tests do a PCCL_TEST_SCALE-th of their work.
# Prints each program's "N passed, N failed"; exit status 1 if anything failed, 2 if a tool is missing.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build/neon}
cc=${CROSS_CC:-aarch64-linux-gnu-gcc}
export PCCL_TEST_SCALE=${PCCL_TEST_SCALE:-50}

for tool in "$cc" qemu-aarch64; do
    if ! command -v "$tool" >/dev/null; then
        echo "test_neon: $tool not found; apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" >&2
        exit 2
    fi
done

flags=(-std=gnu11 -g -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
    -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wswitch-enum -ffp-contract=off -Isrc -Iinclude -I.)
mkdir -p "$build" || exit 2
objects=()
for source in src/kernels/*.c src/core/dtype.c; do
    object=$build/$(basename "$source" .c).o
    "$cc" "${flags[@]}" -O3 -c "$source" -o "$object" || exit 1
    objects+=("$object")
done

failed=0
for source in tests/kernel/test_*.c; do
    program=$build/$(basename "$source" .c)
    "$cc" "${flags[@]}" -O2 -static "$source" "${objects[@]}" -o "$program" || exit 1
    echo "$(basename "$program") on qemu-aarch64:"
    timeout -k 10 300 qemu-aarch64 "$program" || failed=1
done
exit $failed
