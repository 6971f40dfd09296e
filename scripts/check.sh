#!/usr/bin/env bash
# check.sh [PART...] - everything that must hold, part by part, with the wall time of each; all parts by default.
#
# The last line is "N passed, N failed" over all parts.  Logs are in build/logs; a part that fails shows the end of its own.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=${BUILD:-build}
logs=$build/logs
mkdir -p "$logs"
clang=$(scripts/clang.sh) || exit 1
cores=$(nproc)

configure_and_build() { # directory targets options...
    local dir=$1 targets=$2
    shift 2
    cmake -S . -B "$dir" -G Ninja -DPCCL_WERROR=ON "$@" && cmake --build "$dir" -j "$cores" --target $targets
}
one_test() { # runs a command as one test
    if "$@"; then
        echo "1 passed, 0 failed"
    else
        echo "0 passed, 1 failed"
        return 1
    fi
}

part_setup() { scripts/setup.sh check; }
part_gcc() { one_test configure_and_build "$build/gcc" all -DCMAKE_C_COMPILER=gcc; }
part_clang() { one_test configure_and_build "$build/clang" all -DCMAKE_C_COMPILER="$clang"; }
part_source() { python3 scripts/check_source.py .; }
part_binary() { scripts/check_binary.sh "$build/gcc" && scripts/test_checks.sh "$build/gcc"; }
part_unit() {
    scripts/run_tests.sh -j "$cores" "$build/gcc" tests/unit tests/kernel && scripts/diagrams.sh "$build/gcc" --check
}
part_sim() {
    if compgen -G 'tests/sim/test_*.c' >/dev/null; then
        scripts/run_tests.sh -j "$cores" "$build/gcc" tests/sim || return
    fi
    if [ -x "$build/gcc/tests/sim/sim_run" ]; then
        "$build/gcc/tests/sim/sim_run" --seeds 20000
    fi
}
part_mutants() {
    [ -x scripts/mutants.sh ] || return 0
    configure_and_build "$build/mutants" mutant_programs -DCMAKE_C_COMPILER=gcc -DPCCL_MUTANTS=ON &&
        scripts/mutants.sh "$build/mutants"
}
part_process() { scripts/run_tests.sh "$build/gcc" tests/fault tests/e2e; }
part_examples() {
    scripts/test_seeds.sh "$build/gcc"
    scripts/test_examples.sh "$build/gcc"
}
part_asan() {
    configure_and_build "$build/asan" "ccoip_master tests_unit tests_fault tests_e2e" -DCMAKE_C_COMPILER="$clang" \
        -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g" -DPCCL_SANITIZE=address,undefined &&
        scripts/run_tests.sh -s -j "$cores" "$build/asan" tests/unit tests/fault tests/e2e
}
part_tsan() {
    configure_and_build "$build/tsan" "ccoip_master tests_unit tests_fault tests_e2e" -DCMAKE_C_COMPILER="$clang" \
        -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g" -DPCCL_SANITIZE=thread &&
        scripts/run_tests.sh -s -j "$cores" "$build/tsan" tests/unit tests/fault tests/e2e
}
part_fuzz() { scripts/fuzz.sh 10; }
part_package() { scripts/test_package.sh; }
part_neon() {
    [ -x scripts/test_neon.sh ] || return 0
    if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
        echo "skipped: no aarch64 compiler or qemu-user here"
        return 0
    fi
    scripts/test_neon.sh
}

# Runs one part; adds a row to the table.  The result is the sum of the part's lines, or one failure if it ended badly
# without saying so.
table=""
failures="" # the lines that name them, repeated at the very end
total_passed=0
total_failed=0
run_part() {
    local name=$1 log=$logs/$1.log start status passed failed
    start=$(date +%s%N)
    "part_$name" >"$log" 2>&1
    status=$?
    read -r passed failed < <(awk -v status=$status '
        /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 }
        END { if (status != 0 && failed == 0) { failed = 1 } print passed + 0, failed + 0 }' "$log")
    local row
    row=$(printf '%-10s %7.1f s %8d passed %5d failed' "$name" "$((($(date +%s%N) - start) / 100000000))e-1" \
        "$passed" "$failed")
    echo "$row"
    table+="$row"$'\n'
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    if [ "$failed" != 0 ]; then
        echo "---- end of $log"
        tail -n 80 "$log"
        echo "----"
        failures+=$(grep -aE '^(\| )?(FAIL|SUMMARY: |---- |exit status )|: (expected|error: )|, expected ' "$log" |
            head -n 8 | cut -c 1-200 | sed "s/^/$name: /")$'\n'
    fi
}

if [ $# = 0 ]; then
    set -- setup gcc clang source binary unit sim mutants process examples asan tsan fuzz package neon
fi
begin=$SECONDS
for part in "$@"; do
    run_part "$part"
done
printf '\n%s%-10s %7.1f s\n' "$table" "all parts" $((SECONDS - begin))
printf '%s' "$failures"
echo "$total_passed passed, $total_failed failed"
[ "$total_failed" = 0 ]
