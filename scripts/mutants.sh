#!/usr/bin/env bash
# mutants.sh [BUILD] - each known mistake of src/core/mutant.h, switched on in a test-only build, must be found by the simulator.
#
# BUILD holds tests/sim/sim_run built with PCCL_MUTANTS; without it one is made in build/mutants.  Prints a table: mutant, the seed
# that found it, what was violated.  The last line is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=${1:-}
if [ -z "$build" ]; then
    build=build/mutants
    cmake -S . -B "$build" -DPCCL_MUTANTS=ON >/dev/null && cmake --build "$build" -j "$(nproc)" --target sim_run >/dev/null ||
        exit 1
fi
run=$build/tests/sim/sim_run
seeds=${MUTANT_SEEDS:-20000}
names=$(sed -n '/define MUTANT_LIST/,/^$/p' src/core/mutant.h | grep -o 'X([A-Z_]*)' | sed 's/X(\(.*\))/\1/' | grep -v '^X$')

one() { # a line of the table: name, found or missed, seed and violation
    local name=$1 out
    out=$(timeout -k 5 60 "$2" --mutant "$name" --seeds "$3" --jobs 1 2>&1)
    local line
    line=$(printf '%s\n' "$out" | grep -m1 '^seed ')
    if [ -n "$line" ]; then
        printf '%-22s found   %.110s\n' "$name" "$line"
    else
        printf '%-22s MISSED  %s\n' "$name" "$(printf '%s\n' "$out" | tail -n 1)"
    fi
}
export -f one

table=$(printf '%s\n' $names | xargs -P "$(nproc)" -I{} bash -c 'one "$@"' _ {} "$run" "$seeds" | sort)
printf '%s\n' "$table"
passed=$(printf '%s\n' "$table" | grep -c ' found ')
failed=$(printf '%s\n' "$table" | grep -c ' MISSED ')
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
