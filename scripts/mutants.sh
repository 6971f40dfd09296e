#!/usr/bin/env bash
# mutants.sh [BUILD] - each known mistake of src/core/mutant.h, switched on in a test-only build, must be found: by the
# simulator within its budget (a rare one from a seed on that meets it), or, where the schedule is too rare for it, by a
# unit test made for the rule; mistakes of the library's shells by a test of processes.
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

# A seed that meets it, of what the simulator meets once in a thousand.
rare_seed() {
    case $1 in
    SKIP_ALL) echo 117 ;;
    SETTLED_LEAST) echo 1724 ;;
    VOTE_UNTOLD) echo 2455 ;;
    PATH_UNTOLD) echo 3085 ;;
    *) echo 1 ;;
    esac
}

by_simulator() { # name, seconds: limits of processor time, so that a loaded machine makes nothing missed
    local line
    line=$("$run" --mutant "$1" --first "$(rare_seed "$1")" --seeds "$seeds" --jobs 1 --seconds "$2" 2>&1 | grep -m1 '^seed ') || return 1
    printf '%-22s found   %.110s\n' "$1" "$line"
}

# The simulator has shells of its own: mistakes of the library's are for processes; what needs the least room there can be, for a
# test that has no more.
process_test() {
    case $1 in
    RESTORE_NOT) echo e2e/test_members restored ;;
    NO_USER_TIMEOUT) echo e2e/test_links every_connection ;;
    FRAME_TIMER_NOT) echo fault/test_master_hostile never_finishes ;;
    REST_NOT) echo fault/test_shared_links nobody_polls ;;
    FABRIC_UNORDERED) echo unit/test_fabric in_order ;;
    ROOM_LEAK) echo fault/test_kill owes ;;
    BENCH_WRONG) echo e2e/test_bench all_collectives ;;
    WINDOW_OWED | WINDOW_SKIPPED) echo unit/test_session_window ;;
    WINDOW_KEPT) echo unit/test_window_step asked_again ;;
    WINDOW_SIGNAL_LATE) echo e2e/test_window_lies passed ;;
    WINDOW_PUT_AGAIN) echo e2e/test_window_lies have_come ;;
    WINDOW_UNSHARED) echo e2e/test_window_lies never_come ;;
    SUMS_UNREADY) echo unit/test_exec sums_of_others ;;
    esac
}

by_test() { # name, tests, each with the words that choose from it: the first that fails under the mistake
    local name=$1 test out
    shift
    for test in "$@"; do
        if ! out=$(PCCL_MUTANT=$name timeout -k 5 120 $test 2>/dev/null); then
            test=${test% *}
            printf '%-22s found   %s: %s\n' "$name" "${test##*/}" "$(printf '%s\n' "$out" | grep -m1 FAILED)"
            return 0
        fi
    done
    return 1
}

one() { # a line of the table: name, found or missed, seed and violation; what finds most of them at once comes first
    local tests=${run%/sim/sim_run} process
    process=$(process_test "$1") # some of these meet it in most of their runs only
    if [ -n "$process" ]; then
        process=$tests/$process
        by_test "$1" "$process" "$process" "$process" || printf '%-22s MISSED\n' "$1"
        return
    fi
    by_simulator "$1" 3 || by_test "$1" "$tests"/unit/test_{session*,master_*,bulk_order,exec_wait} ||
        by_simulator "$1" "${MUTANT_SECONDS:-25}" || printf '%-22s MISSED\n' "$1"
}
export -f one by_simulator by_test process_test rare_seed
export run seeds

table=$(printf '%s\n' $names | xargs -P "$(nproc)" -I{} bash -c 'one "$1"' _ {} | sort)
printf '%s\n' "$table"
passed=$(printf '%s\n' "$table" | grep -c ' found ')
failed=$(printf '%s\n' "$table" | grep -c ' MISSED')
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
