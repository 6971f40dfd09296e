# testing.sh - sourced by the test scripts, which run in the root of the project: a scratch folder $work that goes at the end,
# tests that are counted, shown where they fail, and summed up in the last line; a master to test against.
# SPDX-License-Identifier: MIT
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

count() { # name status: one test that was made
    if [ "$2" = 0 ]; then
        echo "PASS $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1"
        failed=$((failed + 1))
    fi
}
check() { # name command...: the command as one test; its output is shown if it fails
    "${@:2}" >"$work/check.log" 2>&1
    local status=$?
    if [ $status = 77 ]; then
        echo "SKIPPED $1: $(tail -n 1 "$work/check.log")"
        return
    fi
    [ $status = 0 ] || tail -n 100 "$work/check.log"
    count "$1" $status
}
needs() { # command...: a test that cannot be made without begins with "needs x || return"
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || { echo "$name is not there"; return 77; }
    done
}
check_each() { # functions...: each is a test that has its name
    local name
    for name in "$@"; do
        check "$name" "$name"
    done
}
begun=0
aside() { # name command...: the command as one test, beside others, one on each core; $case is a folder of its own
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
        wait -n
    done
    begun=$((begun + 1))
    (
        case=$work/aside.$begun
        mkdir "$case"
        "${@:2}" >"$case.log" 2>&1
        echo "$? $1" >"$case.result"
        rm -rf "$case"
    ) &
}
count_asides() { # waits for them, and counts them in their order
    local i status name
    wait
    for i in $(seq $begun); do
        read -r status name <"$work/aside.$i.result"
        [ "$status" = 0 ] || tail -n 100 "$work/aside.$i.log"
        count "$name" "$status"
    done
    begun=0
}
sum_up() { # the last line, and the status that goes with it
    echo "$passed passed, $failed failed"
    [ $failed = 0 ]
    exit
}
fails_saying() { # pattern command...: a status other than 0, and these words
    local out
    if out=$("${@:2}" 2>&1); then
        echo "did not fail: ${*:2}"
        return 1
    fi
    grep -q -- "$1" <<<"$out" || { echo "$out"; return 1; }
}

start_master() { # options...: the master of $build; sets $master, and $address to where it listens
    : >"$work/master"
    "$build/bin/ccoip_master" "$@" >"$work/master" 2>"$work/master.log" &
    master=$!
    until grep -q listening "$work/master"; do
        kill -0 $master 2>/dev/null || { cat "$work/master.log"; return 1; }
        sleep 0.02
    done
    address=$(sed 's/.*listening at //' "$work/master")
}
stop_master() { # status 0 expected
    kill -TERM $master
    wait $master || { cat "$work/master.log"; return 1; }
}
