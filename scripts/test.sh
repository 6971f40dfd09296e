#!/usr/bin/env bash
# test.sh - the contributor's loop, `make test`: sources, build, unit tests, 1,000 simulated clusters, documents.
#
# It needs gcc, cmake, ninja and python3.  It installs nothing and needs no root.  A test program that has passed and has not
# changed since does not run again: build/gcc/passed remembers it.  Long loops do a tenth of their rounds; `make check` does
# all of them.  The first step that fails ends the run.  The last line is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=${BUILD:-build}
logs=$build/logs/test
tree=$build/gcc
cache=$PWD/$tree/passed
case $build in /*) cache=$tree/passed ;; esac
cores=$(nproc)
. scripts/progress.sh
export PCCL_TEST_QUICK=1

missing=""
for tool in gcc:gcc cmake:cmake ninja:ninja-build python3:python3; do
    command -v "${tool%%:*}" >/dev/null || missing+=" ${tool##*:}"
done
if [ -n "$missing" ]; then
    echo "make test: packages are missing (Debian's names):$missing" >&2
    echo "    apt install --no-install-recommends$missing" >&2
    exit 1
fi
mkdir -p "$logs" "$cache"

step_source() { python3 scripts/check_source.py .; }
step_build() {
    scripts/build.sh "$tree" "tests_unit tests_kernel sim_run" -DCMAKE_C_COMPILER=gcc && echo "1 passed, 0 failed"
}
step_unit() { scripts/run_tests.sh -j "$cores" -c "$cache" "$tree" tests/unit tests/kernel; }
step_seeds() {
    local program=$tree/tests/sim/sim_run known
    known=$cache/$(sha256sum <"$program" | cut -d ' ' -f 1)
    if [ -e "$known" ]; then
        echo "result 1000 0 0s tests/sim/sim_run unchanged"
        echo "1000 passed, 0 failed"
    else
        "$program" --seeds 1000 && touch "$known"
    fi
}
step_documents() { # begun beside the build: one core is enough
    wait "$documents"
    local status=$?
    cat "$logs/documents.out"
    return $status
}
(python3 scripts/check_docs.py . && python3 scripts/pictures.py --check) >"$logs/documents.out" 2>&1 &
documents=$!
trap 'kill $documents 2>/dev/null' EXIT

# A line with the step's time and result.  A step that fails shows the end of its log, and is the last.
total=0
for step in source build unit seeds documents; do
    log=$logs/$step.log
    start=$(date +%s%3N)
    progress_of "$step" "" "$log" "$build" "step_$step"
    status=$?
    took=$(($(date +%s%3N) - start))
    read -r passed failed unchanged < <(awk -v status=$status '
        /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 }
        / unchanged$/ { unchanged++ }
        END { if (status != 0 && failed == 0) { failed = 1 } print passed + 0, failed + 0, unchanged + 0 }' "$log")
    printf '%-10s %6.1f s %6d passed %3d failed' "$step" "${took}e-3" "$passed" "$failed"
    [ "$unchanged" = 0 ] || printf '  (%d programs unchanged)' "$unchanged"
    echo
    total=$((total + passed))
    if [ "$failed" != 0 ]; then
        echo "---- end of $log"
        grep -av '^result [0-9]* 0 ' "$log" | tail -n 60
        echo "----"
        echo "$total passed, $failed failed"
        exit 1
    fi
done
echo "make test took $SECONDS s"
echo "$total passed, 0 failed"
