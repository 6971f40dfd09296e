#!/usr/bin/env bash
# fuzz.sh [SECONDS] [TARGET...] - builds the fuzz targets with clang and runs each for so long (default 10 s), two at a time.
#
# The canary, a target with a planted mistake, must be found: else the fuzzer sees nothing.  Inputs that fail stay in
# build/fuzz/found.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
export seconds=${1:-10}
[ $# -gt 0 ] && shift
export build=${BUILD:-build}/fuzz
export found=$build/found
mkdir -p "$found" "$build"
clang=$(scripts/clang.sh) || exit 1
if ! scripts/build.sh "$build" fuzz_targets -DCMAKE_C_COMPILER="$clang" -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g" \
    -DPCCL_FUZZ=ON; then
    echo "0 passed, 1 failed"
    exit 1
fi

fuzz_one() { # target: one line "ok|FAILED target: what"
    local target=$1 out
    out=$build/$target.log
    mkdir -p "$build/corpus/$target"
    local corpus=("$build/corpus/$target")
    [ -d "fuzz/corpus/$target" ] && corpus+=("fuzz/corpus/$target")
    if "$build/fuzz/$target" -max_total_time="$seconds" -use_value_profile=1 -timeout=5 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$found/$target-" "${corpus[@]}" >"$out" 2>&1; then
        local runs
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out")
        if [ "$target" = canary ]; then
            echo "FAILED canary: the planted mistake was not found in $runs runs"
        else
            echo "ok $target: $runs runs"
        fi
    elif [ "$target" = canary ]; then
        if grep -q 'AddressSanitizer: heap-buffer-overflow' "$out"; then
            echo "ok canary: found"
        else
            echo "FAILED canary: ended otherwise than by the planted mistake"
        fi
    else
        tail -n 40 "$out" | sed 's/^/| /'
        echo "FAILED $target: replay with $build/fuzz/$target $(ls -t "$found/$target-"* 2>/dev/null | head -n 1)"
    fi
}
export -f fuzz_one
if [ $# = 0 ]; then
    set -- $(find "$build/fuzz" -maxdepth 1 -type f -executable -printf '%f\n' | sort)
fi
printf '%s\n' "$@" | xargs -P 2 -I{} bash -c 'fuzz_one {}' | tee "$build/results"
awk '/^ok / { passed++ } /^FAILED / { failed++ }
     END { printf "%d passed, %d failed\n", passed, failed; exit failed != 0 }' "$build/results"
