#!/usr/bin/env bash
# run_tests.sh [-j N] [-s] [-r RUNNER] [-o PROGRAMS] [-c CACHE] BUILD DIR... - runs BUILD/DIR/test_* and adds up their
# "N passed, N failed" lines.
#
# A program that crashes, hangs for 10 minutes, ends without that line, or ends with another status than its line says
# counts as one failed test, and so does a DIR without programs.  Output is shown only then.  BUILD/DIR/skipped names the programs
# that cannot be built here; they are reported as skipped.  -s: the programs are sanitised.
# -r: a program that runs them, an emulator.  -o: only these programs.  -c: a program that has passed and has not changed since
# does not run again; its result comes from the folder CACHE, where its file's name is the hash of the program's bytes.
# SPDX-License-Identifier: MIT
set -u
jobs=1
export runner=""
only=""
export cache=""
while getopts j:r:so:c: option; do
    case $option in
    j) jobs=$OPTARG ;;
    r) runner=$OPTARG ;;
    o) only=$OPTARG ;;
    c) cache=$OPTARG ;;
    s)
        export ASAN_OPTIONS=detect_stack_use_after_return=1:abort_on_error=0
        export UBSAN_OPTIONS=print_stacktrace=1
        export TSAN_OPTIONS=halt_on_error=0:exitcode=66
        export PCCL_SANITIZED=1
        ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
export PCCL_BUILD_DIR
PCCL_BUILD_DIR=$(cd "$1" && pwd)
shift

run_one() { # one line for the table: "passed failed seconds program"; the output first if something failed
    local program=$1 out status line passed=0 failed=0 start=$SECONDS known=""
    if [ -n "$cache" ]; then
        known=$cache/$(sha256sum <"$program" | cut -d ' ' -f 1)
        if [ -s "$known" ]; then
            printf 'result %d 0 0s %s unchanged\n' "$(cat "$known")" "${program#"$PCCL_BUILD_DIR"/}"
            return
        fi
    fi
    out=$(mktemp)
    timeout -k 10 600 $runner "$program" >"$out" 2>&1 </dev/null
    status=$?
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$out" | tail -n 1)
    if [ -n "$line" ]; then
        passed=${line%% *}
        failed=${line#*, }
        failed=${failed%% *}
    fi
    if [ "$failed" = 0 ] && { [ -z "$line" ] || [ $status != 0 ]; }; then
        failed=1
        echo "exit status $status" >>"$out"
    fi
    if [ -n "$known" ] && [ "$failed" = 0 ] && ! grep -aq '^SKIPPED' "$out"; then # what was skipped may be possible later
        echo "$passed" >"$known"
    fi
    {
        flock 9
        if [ "$failed" != 0 ]; then
            echo "---- $program"
            # The first error and the last; marked, so that a sum in it is not counted again.
            { head -n 40 "$out"; tail -n +41 "$out" | grep -a '^FAIL'; tail -n +41 "$out" | tail -n 30; } | sed 's/^/| /'
        fi
        grep -a '^SKIPPED' "$out"
        printf 'result %d %d %ds %s\n' "$passed" "$failed" $((SECONDS - start)) "${program#"$PCCL_BUILD_DIR"/}"
    } 9>"$lock"
    rm -f "$out"
}
export -f run_one
lock=$(mktemp)
results=$(mktemp)
export lock
trap 'rm -f "$lock" "$results"' EXIT

programs=""
for kind in "$@"; do
    [ -z "$only" ] && sed 's/^/SKIPPED /' "$PCCL_BUILD_DIR/$kind/skipped" 2>/dev/null
    here=$(find "$PCCL_BUILD_DIR/$kind" -maxdepth 1 -name 'test_*' -type f -executable 2>/dev/null | sort)
    if [ -n "$only" ]; then
        here=$(for name in $only; do printf '%s\n' "$here" | grep "/$name\$" || echo "$PCCL_BUILD_DIR/$kind/$name"; done)
    fi
    if [ -z "$here" ]; then # a build that forgot its tests must not pass
        echo "no test programs in $kind"
        echo "result 0 1 0s $kind" >>"$results"
    fi
    programs+="$here"$'\n'
done
printf '%s' "$programs" | grep . | xargs -r -d '\n' -n 1 -P "$jobs" bash -c 'run_one "$1"' _ | tee -a "$results"
awk '$1 == "result" { passed += $2; failed += $3 }
     END { printf "%d passed, %d failed\n", passed, failed; exit failed != 0 }' "$results"
