#!/usr/bin/env bash
# mutants.sh [-u] [BUILD] - each known mistake of src/core/mutant.h, switched on in a test-only build, must be found: by the
# simulator within its budget, or, where the schedule is too rare for it, by a unit test made for the rule; mistakes of the
# library's shells by a test of processes.
#
# scripts/mutants.txt names what has found each before, which is tried first; what it no longer finds is searched for.
# -u: writes there what has found it now.
# BUILD holds sim_run and the tests built with PCCL_MUTANTS; without it one is made in build/mutants.  Prints a table: mutant,
# what found it, what was violated.  The last line is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
known=scripts/mutants.txt
update=false
if [ "${1:-}" = -u ]; then
    update=true
    shift
fi
build=${1:-}
if [ -z "$build" ]; then
    build=build/mutants
    scripts/build.sh $build mutant_programs -DCMAKE_C_COMPILER=gcc -DPCCL_MUTANTS=ON || exit 1
fi
names=$(sed -n '/define MUTANT_LIST/,/^$/p' src/core/mutant.h | grep -o 'X([A-Z_]*)' | sed 's/X(\(.*\))/\1/' | grep -v '^X$')
tests=$build/tests
seeds=${MUTANT_SEEDS:-20000}

# A line of the table: what found it in the form of mutants.txt, then what was violated.
found() { printf '%-22s found   %-40s %.100s\n' "$@"; }

by_simulator() { # name, first seed, seeds, seconds of processor time, so that a loaded machine makes nothing missed
    local line
    line=$("$tests/sim/sim_run" --mutant "$1" --first "$2" --seeds "$3" --jobs 1 --seconds "$4" 2>&1 | grep -m1 '^seed ') || return 1
    line=${line#seed }
    found "$1" "seed ${line%%:*}" "${line#*: }"
}

by_test() { # name, test, word that chooses from it
    local out failed
    if ! out=$(PCCL_MUTANT=$1 timeout -k 5 120 "$tests/$2" ${3:+"$3"} 2>&1); then
        failed=$(printf '%s\n' "$out" | grep -am1 '^FAILED' | cut -d ' ' -f 2)
        found "$1" "$2 ${failed:-${3:-}}" "$(printf '%s\n' "$out" | grep -avm1 '^[A-Z]')"
        return 0
    fi
    return 1
}

again() { # name, what has found it; a test of processes meets it in most of its runs only
    case $2 in
    '') return 1 ;;
    seed) by_simulator "$1" "$3" 1 60 ;;
    *) by_test "$@" || by_test "$@" || by_test "$@" ;;
    esac
}

search() { # name; what finds most of them at once comes first
    local test
    by_simulator "$1" 1 "$seeds" 3 && return
    for test in "$tests"/unit/test_{session*,master_*,bulk_order,exec_wait}; do
        by_test "$1" "${test#"$tests"/}" && return
    done
    by_simulator "$1" 1 "$seeds" "${MUTANT_SECONDS:-25}"
}

one() { # a line of the table
    # shellcheck disable=SC2046 # seed or test, and number or word
    again "$1" $(grep "^$1 " $known | cut -d ' ' -f 2-) || search "$1" || printf '%-22s MISSED\n' "$1"
}
export -f one again search found by_simulator by_test
export tests seeds known

# Processes mostly wait, some for minutes: they come first, and two are under way on each core.
ordered=$(printf '%s\n' $names | awk -v known=$known 'BEGIN { while (getline <known) { waits[$1] = $2 ~ /^(fault|e2e)/ } }
    { print waits[$1] ? 0 : 1, $1 }' | sort -sn | cut -d ' ' -f 2)
table=$(printf '%s\n' "$ordered" | xargs -P $((2 * $(nproc))) -I{} bash -c 'one "$1"' _ {} | sort)
printf '%s\n' "$table"
if $update; then
    printf '%s\n' "$table" | awk '$2 == "found" { print $1, $3, $4 }' >$known
fi
passed=$(printf '%s\n' "$table" | grep -c ' found ')
failed=$(printf '%s\n' "$table" | grep -c ' MISSED')
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
