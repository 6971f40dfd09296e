#!/usr/bin/env bash
# check.sh [-k] [PART...] - everything that must hold, part by part, with the wall time of each; all parts by default.
# check.sh --plan [PART...] - prints the parts, what they download and how long they take, and runs nothing.
#
# On a terminal a line shows what runs now.  If a first part fails (FIRST below), the others do not run, since their results
# would say the same; -k runs them all the same.  The last line is "N passed, N failed" over all parts; before it stand the
# times, what was skipped and why, and the name of every test that failed.  Logs are in build/logs; a part that fails shows
# the end of its own.  build/logs/seconds holds the time of each part's last run, which is what --plan and the progress show.
#
# Parts that wait for networks and processes (WAITING) leave a core or two to parts that only compute (COMPUTING).  These run beside
# them, in order, from the first that waits on, and are scheduled only where a core has nothing else to do.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=${BUILD:-build}
logs=$build/logs
times=$logs/seconds
mkdir -p "$logs"
cores=$(nproc)
waiting=$((cores + (cores + 1) / 2)) # programs at once, of tests that mostly wait for each other
. scripts/progress.sh
FIRST="setup source gcc unit"
WAITING="wan examples chaos python"
COMPUTING="sim docs clang builds models solver neon"
ALL="setup source gcc unit docs binary sim process wan examples chaos tcp fabric clang builds models mutants asan tsan fuzz package python compare solver neon"

one_test() { # runs a command as one test
    if "$@"; then
        echo "1 passed, 0 failed"
    else
        echo "0 passed, 1 failed"
        return 1
    fi
}

part_setup() { scripts/setup.sh check; }
part_gcc() { one_test scripts/build.sh "$build/gcc" all -DCMAKE_C_COMPILER=gcc; }
part_clang() { one_test scripts/build.sh "$build/clang" all -DCMAKE_C_COMPILER="$clang"; }
left_out_by_name() { # build: the tests that need the headers are reported, and no others
    local here=$1/left_out/tests/unit
    mkdir -p "$here" && cp "$1/tests/unit/skipped" "$here" || return 1
    scripts/run_tests.sh "$1/left_out" tests/unit | grep '^SKIPPED' | sed 's/:.*//' |
        diff - <(printf 'SKIPPED unit/%s\n' test_fabric test_fabric_lies)
}
part_builds() { # what users build, in every other way that they may build it; parts gcc and clang build RelWithDebInfo
    local compiler type types newest header
    newest=$(scripts/clang.sh --newest)
    for compiler in gcc "$clang" "$newest"; do
        types="Debug"
        if [ "$compiler" = gcc ]; then
            types="Release Debug MinSizeRel" # its warnings depend on how it optimises
        elif [ "$compiler" = "$newest" ] && [ "$newest" != "$clang" ]; then
            types="RelWithDebInfo Debug"
        fi
        for type in $types; do
            echo "== $compiler $type"
            one_test scripts/build.sh "$build/$compiler-$type" "pccl_product pccl_examples" -DCMAKE_C_COMPILER="$compiler" \
                -DCMAKE_BUILD_TYPE="$type"
        done
        if [ "$compiler" = "$clang" ] && [ "$clang" = "$newest" ]; then
            echo "SKIPPED newest clang: none newer than $clang is installed"
            break
        fi
    done
    echo "== gcc without the headers of libfabric and inih"
    mkdir -p "$build/no-headers/rdma" # found before those that are installed
    for header in fabric fi_cm fi_domain fi_endpoint fi_errno; do
        echo '#error "not installed"' >"$build/no-headers/rdma/$header.h"
    done
    echo '#error "not installed"' >"$build/no-headers/ini.h"
    one_test scripts/build.sh "$build/gcc-no-libfabric" "pccl_product tests_unit" -DCMAKE_C_COMPILER=gcc \
        -DCMAKE_C_FLAGS="-I$(cd "$build/no-headers" && pwd)"
    one_test left_out_by_name "$build/gcc-no-libfabric"
}
part_source() { python3 scripts/check_source.py .; }
part_docs() {
    python3 scripts/check_docs.py .
    python3 scripts/draw_charts.py --check
    python3 scripts/rules_table.py --check
    python3 scripts/pictures.py --check
    scripts/test_check_docs.sh
}
part_models() { # make verify runs all of them
    if ! command -v spin >/dev/null; then
        echo "SKIPPED models: spin is not installed"
        echo "0 passed, 0 failed"
        return
    fi
    python3 scripts/verify.py --quick -j "$cores"
}
part_binary() {
    scripts/check_binary.sh "$build/gcc" && python3 scripts/check_circles.py "$build/gcc" && scripts/test_checks.sh "$build/gcc"
}
part_unit() {
    scripts/run_tests.sh -j "$cores" "$build/gcc" tests/unit tests/kernel && scripts/diagrams.sh "$build/gcc" --check
}
part_sim() { # seeds that are the same each time, then some that nobody has seen
    local run=$build/gcc/tests/sim/sim_run first
    first=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
    local drawn=("$run" --first "$first" --seeds 10000)
    echo "drawn: ${drawn[*]}"
    scripts/run_tests.sh -j "$cores" "$build/gcc" tests/sim && "$run" --seeds 10000 --cells 8 && "${drawn[@]}"
}
part_mutants() {
    scripts/build.sh "$build/mutants" mutant_programs -DCMAKE_C_COMPILER=gcc -DPCCL_MUTANTS=ON &&
        scripts/mutants.sh "$build/mutants"
}
part_process() { scripts/run_tests.sh -j "$waiting" "$build/gcc" tests/fault tests/e2e; }
part_wan() { # what measures rates runs alone; what mostly waits for faults runs two at a time
    local faults others
    faults=$(basename -a "$build"/gcc/tests/wan/test_wan_faults*)
    others=$(basename -a "$build"/gcc/tests/wan/test_* | grep -v '^test_wan_faults')
    scripts/run_tests.sh -o "$others" "$build/gcc" tests/wan
    scripts/run_tests.sh -j 2 -o "$faults" "$build/gcc" tests/wan
}
# Where data goes another way than part process has it: what becomes of it when members die, stand still, give up or lie.
data_over() { # ASSIGNMENT...
    local fault="test_bulk test_collective_kill test_groups test_kill test_message_kill test_queue_kill test_same_bits test_split_kill
        test_state_faults test_stop test_window_kill"
    local e2e="test_cancel test_collectives test_data_lies test_messages test_window_lies test_windows"
    env PCCL_SHM_DISABLE=1 "$@" scripts/run_tests.sh -j "$waiting" -o "$fault" "$build/gcc" tests/fault
    env PCCL_SHM_DISABLE=1 "$@" scripts/run_tests.sh -j "$waiting" -o "$e2e" "$build/gcc" tests/e2e
}
part_tcp() { data_over; }
part_fabric() { # of the providers tcp: shm leaves what it shared when a process is killed, and lets none start that has its number
    if ! grep -q '^PCCL_LIBFABRIC_HEADERS:INTERNAL=1' "$build/gcc/CMakeCache.txt"; then
        echo "SKIPPED fabric: libfabric-dev is not installed"
        echo "0 passed, 0 failed"
        return
    fi
    data_over PCCL_NET=OFI FI_PROVIDER=tcp FI_TCP_IFACE=lo
}
part_chaos() { "$build/gcc/tests/chaos/chaos_run" --seconds 40 --seed 1 --jobs $((2 * cores)) --logs "$logs/chaos"; }
part_examples() {
    scripts/test_seeds.sh "$build/gcc"
    scripts/test_examples.sh "$build/gcc"
}
part_asan() {
    scripts/build.sh "$build/asan" "ccoip_master pccl_command tests_unit tests_fault tests_e2e" -DCMAKE_C_COMPILER="$clang" \
        -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g" -DPCCL_SANITIZE=address,undefined &&
        scripts/run_tests.sh -s -j "$waiting" "$build/asan" tests/unit tests/fault tests/e2e
}
threaded_units() { # the unit tests that reach folders with threads; the others only call steps
    grep -lE '^#include ["<](api|engine|net|pccl|pthread|server|window)' tests/unit/test_*.c | xargs -n 1 basename -s .c
}
part_tsan() {
    local units
    units=$(threaded_units | tr '\n' ' ')
    scripts/build.sh "$build/tsan" "ccoip_master pccl_command $units tests_fault tests_e2e" -DCMAKE_C_COMPILER="$clang" \
        -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g" -DPCCL_SANITIZE=thread || return 1
    scripts/run_tests.sh -s -j "$waiting" -o "$units" "$build/tsan" tests/unit
    scripts/run_tests.sh -s -j "$waiting" "$build/tsan" tests/fault tests/e2e
}
part_fuzz() { scripts/fuzz.sh 10; }
part_package() {
    scripts/test_setup.sh
    scripts/test_package.sh
}
part_python() { scripts/test_python.sh "$build/python"; }
part_compare() { python3 scripts/test_compare.py && python3 scripts/test_distant.py; }
part_solver() { scripts/test_solver.sh "$build/gcc"; }
part_neon() { scripts/test_neon.sh "$build/neon"; }

named_failures() { # part, log: every test that failed, then what was seen of the first
    local names
    names=$(grep -aE '^(\| )?FAIL|^seed [0-9]+(:| FAILED)| MISSED$' "$2" | sed 's/^| //' | cut -c 1-200 | sort -u)
    [ -n "$names" ] || names="no test says so; see $2"
    {
        printf '%s\n' "$names"
        grep -aE '^(\| )?(SUMMARY: |---- |exit status )|: (expected|error: |warning: )|, expected ' "$2" | head -n 5 | cut -c 1-200
    } | sed "s/^/$1: /"
}

children_ms() { # part: sets it, the processor time of all that has ended
    times >"$logs/$1.times" # not through a pipe, whose end would ask for its own
    children_ms=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); ms += (t[1] * 60 + t[2]) * 1000 } printf "%d", ms }' "$logs/$1.times")
    rm -f "$logs/$1.times"
}

last_time() { # part: "83 s", nothing if it has not run here
    sed -n "s/^$1 \(.*\)/\1 s/p" "$times" 2>/dev/null
}
keep_time() { # part seconds
    { grep -v "^$1 " "$times" 2>/dev/null; echo "$1 $2"; } >"$times.new"
    mv "$times.new" "$times"
}
plan() { # parts...
    local part all=0 unknown="" downloads=""
    for part in "$@"; do
        if ! grep -q "^$part " "$times" 2>/dev/null; then
            unknown+=" $part"
        elif ! is_of "$part" "$beside"; then
            all=$((all + $(sed -n "s/^$part //p" "$times")))
        fi
        case $part in
        setup) downloads+="    setup   the Debian packages that are missing; their size is printed before it begins"$'\n' ;;
        python) downloads+="    python  PyTorch and what tests/python/requirements.txt names, by pip, once: 0.2 GB for PyTorch's CPU build, which pip takes
            if its index has it; several GB for the build with CUDA"$'\n' ;;
        solver) downloads+="    solver  scipy by pip, once, 0.1 GB"$'\n' ;;
        esac
    done
    echo "$# parts: $*"
    if [ -z "$unknown" ]; then
        echo "time: about $(((all + 59) / 60)) min, as in the last run here"
    elif [ $# = "$(wc -w <<<"$ALL")" ]; then
        echo "time: about 45 min on two idle cores; here are $cores"
    else
        echo "time: these parts have not run here yet:$unknown"
    fi
    [ -z "$downloads" ] || printf 'downloads:\n%s' "$downloads"
    echo "logs: $logs"
}

# Runs one part, its output in a log; leaves its status, milliseconds and processor milliseconds for report_part.
execute_part() {
    local name=$1 start busy status took
    start=$(date +%s%3N)
    children_ms "$name"
    busy=$children_ms
    progress_of "$name" "$(last_time "$name")" "$logs/$name.log" "$build" "part_$name"
    status=$?
    took=$(($(date +%s%3N) - start + 1))
    children_ms "$name"
    echo "$status $took $((children_ms - busy))" >"$logs/$name.result"
}

# Adds a row to the table: wall time, how many of the cores the part kept busy, and the sum of the lines of its log, or one
# failure if it ended badly without saying so.
table=""
failures="" # the lines that name them, repeated at the very end
skipped=""  # what could not be done here
total_passed=0
total_failed=0
report_part() {
    local name=$1 log=$logs/$1.log row status=1 passed failed took=1 busy=0
    part_failed=false
    touch "$log"
    read -r status took busy 2>/dev/null <"$logs/$name.result"
    read -r passed failed < <(awk -v "status=$status" '
        /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 }
        END { if (status != 0 && failed == 0) { failed = 1 } print passed + 0, failed + 0 }' "$log")
    row=$(printf '%-10s %7.1f s %5.2f cores %8d passed %5d failed' "$name" "${took}e-3" "$((100 * busy / took))e-2" "$passed" "$failed")
    echo "$row"
    grep -a '^drawn: ' "$log" # to repeat it
    table+="$row"$'\n'
    keep_time "$name" $((took / 1000))
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    if [ "$failed" != 0 ]; then
        echo "---- end of $log"
        tail -n 80 "$log"
        echo "----"
        failures+=$(named_failures "$name" "$log")$'\n'
        part_failed=true
    fi
    skipped+=$(grep -a '^SKIPPED' "$log" | sort | uniq -c | sed "s/^ *\([0-9]*\) /$name: \1 x /; s/: 1 x /: /")$'\n'
}

is_of() { [[ " $2 " == *" $1 "* ]]; } # word, words
beside=""       # the parts that run beside others
beside_group="" # of those processes, once they run
start_beside() {
    # shellcheck disable=SC2086
    setsid chrt --idle 0 "$0" --beside $beside >"$logs/beside" 2>&1 &
    beside_group=$!
}
stop_beside() { [ -z "$beside_group" ] || kill -- "-$beside_group" 2>/dev/null; }
split_off() { # parts...: what runs beside is moved from `foreground` to `beside`, if there is anything to run it beside
    local part waits=false
    for part in "$@"; do
        is_of "$part" "$WAITING" && waits=true
    done
    for part in "$@"; do
        if $waits && is_of "$part" "$COMPUTING"; then
            beside+=" $part"
        else
            foreground+=" $part"
        fi
    done
}

keep_going=false
only_plan=false
only_execute=false # what start_beside calls
case ${1:-} in
-k) keep_going=true && shift ;;
--plan) only_plan=true && shift ;;
--beside) only_execute=true && shift ;;
-*)
    echo "check.sh: unknown option '$1'" >&2
    exit 2
    ;;
esac
# shellcheck disable=SC2086
[ $# != 0 ] || set -- $ALL
for part in "$@"; do
    if ! declare -F "part_$part" >/dev/null; then
        echo "check.sh: there is no part '$part'" >&2
        exit 2
    fi
done
foreground=""
split_off "$@"
if $only_plan; then
    plan "$@"
    exit
fi
clang=$(scripts/clang.sh) || exit 1
if $only_execute; then # the scheduler gives each session a share: one that setsid has made gets the least
    { echo 19 >/proc/self/autogroup; } 2>/dev/null
    for part in "$@"; do
        execute_part "$part"
    done
    exit
fi
begin=$SECONDS
trap stop_beside EXIT
for part in "$@"; do
    rm -f "$logs/$part.log" "$logs/$part.result"
done
# shellcheck disable=SC2086
set -- $foreground
while [ $# != 0 ]; do
    part=$1
    [ -n "$beside_group" ] || [ -z "$beside" ] || ! is_of "$part" "$WAITING" || start_beside
    execute_part "$part"
    report_part "$part"
    shift
    if $part_failed && ! $keep_going && is_of "$part" "$FIRST" && [ -n "$*$beside" ]; then
        skipped+="SKIPPED after the failure of $part: $*${beside}; to run them all the same: scripts/check.sh -k"$'\n'
        beside=""
        break
    fi
done
[ -z "$beside_group" ] || wait "$beside_group"
beside_group=""
for part in $beside; do
    report_part "$part"
done
printf '\n%s%-10s %7.1f s\n' "$table" "all parts" $((SECONDS - begin))
printf '%s%s' "$skipped" "$failures" | grep .
echo "$total_passed passed, $total_failed failed"
[ "$total_failed" = 0 ]
