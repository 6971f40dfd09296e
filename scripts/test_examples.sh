#!/usr/bin/env bash
# test_examples.sh BUILD - the examples do what they say: the smallest program twice, and a short demo with its kill, its
# late peer and its proof.  The last line is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=$(cd "${1:?build directory}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

check() { # name command...: one test; its output is shown if it fails
    local name=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        cat "$work/out"
    fi
}

smallest_program_adds_up() {
    touch "$work/master"
    "$build/bin/ccoip_master" --listen 127.0.0.1:0 >"$work/master" &
    local master=$! address first status=0
    until grep -q listening "$work/master"; do
        kill -0 $master || return 1
        sleep 0.02
    done
    address=$(sed 's/.*listening at //' "$work/master")
    timeout 30 "$build/examples/allreduce_min" 40 "$address" >"$work/first" &
    first=$!
    timeout 30 "$build/examples/allreduce_min" 2 "$address" >"$work/second" || status=1
    wait $first || status=1
    kill -TERM $master
    wait $master || status=1
    cat "$work/first" "$work/second"
    [ "$(cat "$work/first" "$work/second" | grep -c 'sum over 2 peers: 42')" = 2 ] && [ $status = 0 ]
}
smallest_program_says_what_is_wrong() { # nobody listens there
    local out
    out=$(timeout 60 "$build/examples/allreduce_min" 1 127.0.0.1:1 2>&1)
    [ $? = 1 ] && [ -n "$out" ]
}
options_are_checked() {
    "$build/examples/train_charlm" --stesp 5
    [ $? = 2 ] || return 1
    "$build/examples/train_charlm" --text /nonexistent
    [ $? = 2 ]
}

check smallest_program_adds_up smallest_program_adds_up
check smallest_program_says_what_is_wrong smallest_program_says_what_is_wrong
check options_are_checked options_are_checked
check demo_survives_and_learns env STEPS=300 timeout 300 scripts/demo.sh "$build"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
