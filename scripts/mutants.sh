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

one() { # a line of the table: name, found or missed, seed and violation
    local name=$1 out
    # a limit of processor time, so that a loaded machine makes nothing missed
    out=$("$2" --mutant "$name" --seeds "$3" --jobs 1 --seconds "${MUTANT_SECONDS:-25}" 2>&1)
    local line
    line=$(printf '%s\n' "$out" | grep -m1 '^seed ')
    if [ -n "$line" ]; then
        printf '%-22s found   %.110s\n' "$name" "$line"
        return
    fi
    local test
    for test in "${2%/sim/sim_run}"/unit/test_{session*,master_*,bulk_order,exec_wait}; do
        if ! out=$(PCCL_MUTANT=$name timeout -k 5 60 "$test" 2>/dev/null); then
            printf '%-22s found   %s: %s\n' "$name" "${test##*/}" "$(printf '%s\n' "$out" | grep -m1 FAILED)"
            return
        fi
    done
    printf '%-22s MISSED\n' "$name"
}
export -f one

table=$(printf '%s\n' $names | xargs -P "$(nproc)" -I{} bash -c 'one "$@"' _ {} "$run" "$seeds" | sort)
printf '%s\n' "$table"
passed=$(printf '%s\n' "$table" | grep -c ' found ')
failed=$(printf '%s\n' "$table" | grep -c ' MISSED')
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
