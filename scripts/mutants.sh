#!/usr/bin/env bash
# mutants.sh [BUILD] - each known mistake of src/core/mutant.h, switched on in a test-only build, must be found: by the
# simulator within its budget, or, where the schedule is too rare for it, by a unit test made for the rule.
#
# BUILD holds sim_run and the unit tests of master and session built with PCCL_MUTANTS; without it one is made in
# build/mutants.  Prints a table: mutant, what found it, what was violated.  The last line is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=${1:-}
if [ -z "$build" ]; then
    build=build/mutants
    scripts/build.sh $build mutant_programs -DCMAKE_C_COMPILER=gcc -DPCCL_MUTANTS=ON || exit 1
fi
run=$build/tests/sim/sim_run
seeds=${MUTANT_SEEDS:-20000}
names=$(sed -n '/define MUTANT_LIST/,/^$/p' src/core/mutant.h | grep -o 'X([A-Z_]*)' | sed 's/X(\(.*\))/\1/' | grep -v '^X$')

by_simulator() { # name, seconds: limits of processor time, so that a loaded machine makes nothing missed
    local line
    line=$("$run" --mutant "$1" --seeds "$seeds" --jobs 1 --seconds "$2" 2>&1 | grep -m1 '^seed ') || return 1
    printf '%-22s found   %.110s\n' "$1" "$line"
}

by_unit_test() {
    local test out
    for test in "${run%/sim/sim_run}"/unit/test_{session*,master_*,bulk_order,exec_wait}; do
        if ! out=$(PCCL_MUTANT=$1 timeout -k 5 60 "$test" 2>/dev/null); then
            printf '%-22s found   %s: %s\n' "$1" "${test##*/}" "$(printf '%s\n' "$out" | grep -m1 FAILED)"
            return 0
        fi
    done
    return 1
}

one() { # a line of the table: name, found or missed, seed and violation; what finds most of them at once comes first
    by_simulator "$1" 3 || by_unit_test "$1" || by_simulator "$1" "${MUTANT_SECONDS:-25}" || printf '%-22s MISSED\n' "$1"
}
export -f one by_simulator by_unit_test
export run seeds

table=$(printf '%s\n' $names | xargs -P "$(nproc)" -I{} bash -c 'one "$1"' _ {} | sort)
printf '%s\n' "$table"
passed=$(printf '%s\n' "$table" | grep -c ' found ')
failed=$(printf '%s\n' "$table" | grep -c ' MISSED')
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
