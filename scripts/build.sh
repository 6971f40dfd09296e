#!/usr/bin/env bash
# build.sh DIR "TARGET..." [OPTION...] - configures DIR with these options of CMake and builds the targets as developers do: a
# warning is an error, the linker's too.  Says nothing unless it fails.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
dir=${1:?build directory}
targets=${2:?targets}
log=$dir/build.log
mkdir -p "$dir"
# shellcheck disable=SC2086
if { cmake -S . -B "$dir" -G Ninja -DPCCL_WERROR=ON "${@:3}" && cmake --build "$dir" -j "$(nproc)" --target $targets; } \
    >"$log" 2>&1 && ! grep -q 'warning:' "$log"; then
    exit 0
fi
grep -E '(error|warning):' "$log" | head -n 20
tail -n 40 "$log"
exit 1
