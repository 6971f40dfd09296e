#!/usr/bin/env bash
# test_examples.sh BUILD - the examples do what they say: the smallest program twice, a peer of the training program that is
# frozen and comes back, the loop of GETTING_STARTED.md, and a short demo with its kill, its late peer and its proof.  The last line
# is "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=$(cd "${1:?build directory}" && pwd)
. scripts/testing.sh

smallest_program_adds_up() {
    local first status=0
    start_master --listen 127.0.0.1:0 || return 1
    timeout 30 "$build/examples/allreduce_min" 40 "$address" >"$work/first" &
    first=$!
    timeout 30 "$build/examples/allreduce_min" 2 "$address" >"$work/second" || status=1
    wait $first || status=1
    stop_master || status=1
    cat "$work/first" "$work/second"
    [ "$(cat "$work/first" "$work/second" | grep -c 'sum over 2 peers: 42')" = 2 ] && [ $status = 0 ]
}
smallest_program_says_what_is_wrong() { # nobody listens there
    local out
    out=$(timeout 60 "$build/examples/allreduce_min" 1 127.0.0.1:1 2>&1)
    [ $? = 1 ] && [ -n "$out" ]
}
collective() { # name, what both copies say together, sorted
    local first status=0 said
    start_master --listen 127.0.0.1:0 || return 1
    timeout 30 "$build/examples/collectives" "$1" "$address" >"$work/first" &
    first=$!
    timeout 30 "$build/examples/collectives" "$1" "$address" >"$work/second" || status=1
    wait $first || status=1
    stop_master || status=1
    said=$(sort "$work/first" "$work/second" | sed 's/rank //; s/ of 2//' | paste -sd';')
    [ "$said" = "$2" ] && [ $status = 0 ] || { echo "$1: $said"; return 1; }
}
each_sum_comes_out_of_a_queue_once() {
    local first status=0 said
    start_master --listen 127.0.0.1:0 || return 1
    timeout 30 "$build/examples/completion_queue" "$address" >"$work/first" &
    first=$!
    timeout 30 "$build/examples/completion_queue" "$address" >"$work/second" || status=1
    wait $first || status=1
    stop_master || status=1
    said=$(sort "$work/first" "$work/second" | paste -sd';')
    [ "$said" = 'sum 0: 2;sum 0: 2;sum 1: 4;sum 1: 4;sum 2: 6;sum 2: 6;sum 3: 8;sum 3: 8' ] && [ $status = 0 ] || {
        echo "$said"
        return 1
    }
}
each_collective_says_what_it_has() {
    collective all-reduce '0: mean: 0.5 1;1: mean: 0.5 1' &&
        collective reduce-scatter '0: own part of the sum: 1;1: own part of the sum: 21' &&
        collective all-gather '0: all: 0 1;1: all: 0 1' &&
        collective broadcast '0: weights: 3 1 4;1: weights: 3 1 4' &&
        collective scatter '0: own part: 100;1: own part: 101' &&
        collective all-to-all '0: from all: 0 10;1: from all: 1 11' &&
        collective exchange '0: from the one before: 1;1: from the one before: 0' &&
        collective reduce '0: worst: 2' &&
        collective gather '0: all: 0 1' &&
        collective gather-v '0: lists: 0 1 1' &&
        collective all-gather-v '0: lists: 0 1 1;1: lists: 0 1 1' &&
        collective reduce-scatter-v '0: own part of the sum: 1;1: own part of the sum: 21 41' &&
        collective scatter-v '0: own part: 100;1: own part: 101 101' &&
        collective all-to-all-v '0: from all: 0 10;1: from all: 1 1 11 11' &&
        collective barrier '0: all have come, counted: 2;1: all have come, counted: 2'
}
# One of three is killed between its first steps and its last; the other two go on.
one_of_three_is_killed() {
    local i status=0
    local -a member=()
    start_master --listen 127.0.0.1:0 || return 1
    for i in 1 2; do
        timeout 120 "$build/examples/repeat" 3 "$address" >"$work/repeat-$i" &
        member[$i]=$!
    done
    : >"$work/repeat-3"
    "$build/examples/repeat" 3 "$address" >"$work/repeat-3" &
    member[3]=$!
    until grep -q '^50 steps' "$work/repeat-3"; do
        kill -0 "${member[3]}" 2>/dev/null || break
        sleep 0.02
    done
    kill -9 "${member[3]}"
    wait "${member[3]}"
    for i in 1 2; do
        wait "${member[$i]}" || status=1
    done
    stop_master || status=1
    tail -n 20 "$work"/repeat-[12]
    [ $status = 0 ] && [ "$(tail -qn 1 "$work"/repeat-[12] | sort -u)" = 'the last among 2, first mean 299' ] &&
        ! grep -q '^300 steps' "$work/repeat-3"
}
a_step_is_repeated_by_those_who_are_left() { # unless all three stood between two steps as it was killed
    local attempt
    for attempt in 1 2 3; do
        one_of_three_is_killed || return 1
        ! grep -q '^layer 7 again' "$work/repeat-1" || return 0
    done
    return 1
}
a_grid_sums_up_along_rows_and_columns() {
    local rank status=0 pids=()
    start_master --listen 127.0.0.1:0 || return 1
    for rank in 0 1 2 3 4 5; do
        timeout 30 "$build/examples/split" $rank 6 3 "$address" >"$work/rank-$rank" &
        pids+=($!)
    done
    for rank in 0 1 2 3 4 5; do
        wait "${pids[$rank]}" || status=1
    done
    stop_master || status=1
    cat "$work"/rank-[0-5]
    [ $status = 0 ] && [ "$(cat "$work"/rank-[0-5] | paste -sd';')" = "$(printf 'rank %s;' '0: row 0 sums to 3, column 0 to 3' \
        '1: row 0 sums to 3, column 1 to 5' '2: row 0 sums to 3, column 2 to 7' '3: row 1 sums to 12, column 0 to 3' \
        '4: row 1 sums to 12, column 1 to 5' '5: row 1 sums to 12, column 2 to 7' | sed 's/;$//')" ]
}
each_ticket_is_drawn_once() {
    local status=0 rank drawn
    local -a member=()
    start_master --listen 127.0.0.1:0 || return 1
    for rank in 0 1 2; do
        timeout 60 "$build/examples/tickets" 3 "$address" >"$work/ticket-$rank" &
        member+=($!)
    done
    for rank in 0 1 2; do
        wait "${member[$rank]}" || status=1
    done
    stop_master || status=1
    cat "$work"/ticket-?
    drawn=$(sed -n 's/.*: \([0-9]*\) tickets/\1/p' "$work"/ticket-? | awk '{ n += $1 } END { print n }')
    [ $status = 0 ] && grep -q '^0 of 1000 results missing' "$work"/ticket-? && [ "$drawn" = 1000 ]
}
options_are_checked() {
    "$build/examples/train_charlm" --stesp 5
    [ $? = 2 ] || return 1
    "$build/examples/train_charlm" --text /nonexistent
    [ $? = 2 ]
}


# ---- a peer that is frozen (SIGSTOP) for longer than the master waits, and then continued ----
start_trainer() { # number, peers to wait for: its process in peer[number], its log in $work/peer-NUMBER
    : >"$work/peer-$1"
    "$build/examples/train_charlm" --master "$address" --steps 600 --batch 64 --wait-for "$2" --name "peer-$1" \
        >"$work/peer-$1" 2>&1 &
    peer[$1]=$!
}
until_says() { # number, pattern: until its log has such a line; fails if the peer ends, or 60 s pass, without one
    local try
    for ((try = 0; try < 3000; try++)); do
        grep -q -- "$2" "$work/peer-$1" && return 0
        kill -0 "${peer[$1]}" 2>/dev/null || break
        sleep 0.02
    done
    grep -q -- "$2" "$work/peer-$1" || { echo "peer-$1 never said: $2"; return 1; }
}
finish() { # numbers: all come to their end, with status 0 and the same hash
    local i hashes
    for i in "$@"; do
        until_says "$i" 'finished: step 600' && wait "${peer[$i]}" || return 1
        hashes+=$(sed -n 's/.*have hash //p' "$work/peer-$i")$'\n'
    done
    [ "$(printf %s "$hashes" | sort -u | wc -l)" = 1 ]
}
with_trainers() { # command...: between a master that waits 1 s for a silent peer, and the end of all that was started
    local status=0
    local -a peer=()
    start_master --listen 127.0.0.1:0 --dead-ms 1000 || return 1
    "$@" || status=1
    kill -9 "${peer[@]}" 2>/dev/null
    wait "${peer[@]}" 2>/dev/null
    stop_master || status=1
    tail -n 100 "$work"/peer-*
    rm -f "$work"/peer-*
    return $status
}
step_of() { # number, text: the last step that its log names up to the first line with that text
    sed "/$2/q" "$work/peer-$1" | sed -n 's/.* step *\([0-9][0-9]*\).*/\1/p' | tail -n 1
}

# The others exclude it and go on; then one of these is killed.  What the last one holds can only be finished together with
# the frozen one: that must come back, and take this state instead of bringing its own, which is older.
frozen_peer_comes_back_with_the_others_state() {
    start_trainer 1 3 && until_says 1 'joined: rank 0 of 1' && # so it is peer 1 that tells the steps
        start_trainer 2 3 && start_trainer 3 3 && until_says 1 ' step .* 3 peers' &&
        kill -STOP "${peer[3]}" && until_says 1 ' step .* 2 peers' &&
        kill -9 "${peer[2]}" && until_says 1 'now 1 peers, before 2' &&
        kill -CONT "${peer[3]}" && until_says 3 'no longer a member: .*no longer a member of the run: .*: connect again' &&
        until_says 3 'connected again' && until_says 3 'received .* goes on at step' && finish 1 3 &&
        [ "$(step_of 3 'goes on at step')" -ge "$(step_of 1 'now 1 peers')" ]
}
# All others die, and a new run begins meanwhile: the old state must not be taken for a newer one, though it has seen more steps.
frozen_peer_does_not_bring_an_old_run_back() {
    start_trainer 1 2 && until_says 1 'joined: rank 0 of 1' && start_trainer 2 2 && until_says 1 ' step *216 ' &&
        kill -STOP "${peer[1]}" && kill -9 "${peer[2]}" &&
        start_trainer 3 2 && start_trainer 4 2 && until_says 3 'joined' && until_says 4 'joined' &&
        kill -CONT "${peer[1]}" && until_says 1 'no longer a member' && until_says 1 'received .* goes on at step' && finish 1 3 4
}

# ---- the loop of GETTING_STARTED.md: three run it, one of these dies in the middle ----
loop_listing_compiles() { # as it stands, and with what it calls "yours"
    [ "$(python3 scripts/extract_seeds.py docs/guide/GETTING_STARTED.md "$work" c)" = program_1.c ] &&
        "${CC:-gcc}" -std=c11 -pedantic-errors -Wall -Wextra -Werror -Iinclude -c "$work/program_1.c" -o "$work/listing.o" &&
        "${CC:-gcc}" -std=c11 -pedantic-errors -Wall -Wextra -Werror -Iinclude -I"$work" tests/seeds/loop_model.c \
            -L"$build" -lpccl -Wl,-rpath,"$build" -o "$work/loop"
}
porting_listing_compiles() { # the declarations are those of GETTING_STARTED.md
    [ "$(python3 scripts/extract_seeds.py docs/guide/PORTING.md "$work" c)" = fragment_1.c ] &&
        cat "$work/program_1.c" "$work/fragment_1.c" >"$work/porting.c" &&
        "${CC:-gcc}" -std=c11 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/porting.c"
}
quick_start_in_c() { # with what is installed
    needs pkg-config unshare || return
    cmake --install "$build" --prefix "$work/prefix" >/dev/null &&
        PATH=$PATH:$work/prefix/bin PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name pccl.pc)") \
            LD_LIBRARY_PATH=$(dirname "$(find "$work/prefix" -name libpccl.so)") python3 scripts/quick_starts.py C
}
loop_listing_runs() {
    local status=0 i together
    local -a peer
    start_master --listen 127.0.0.1:0 || return 1
    for i in 1 2 3; do
        LOOP_MASTER=$address LOOP_DIES_AT=$((i == 3 ? 20 : 0)) timeout 60 "$work/loop" >"$work/loop-$i" &
        peer[$i]=$!
    done
    wait "${peer[1]}" && wait "${peer[2]}" || status=1
    wait "${peer[3]}" # killed by itself
    stop_master || status=1
    # Lines: revision, parameter, peers.  Both survivors hold the same after each step that both have made.
    together=$(join <(sort "$work/loop-1") <(sort "$work/loop-2"))
    echo "$together"
    [ $status = 0 ] && echo "$together" | awk '$2 != $4 { exit 1 } { seen[$3]++ } END { exit !(seen[3] >= 10 && seen[2] >= 10) }'
}

# ---- a text of the user's ----
refused_with_one_sentence() { # pattern, text: what make demo TEXT=... does, and train_charlm where the demo is not asked
    local out
    out=$(scripts/demo.sh "$build" "$2" 2>&1)
    [ $? = 2 ] && [ "$(echo "$out" | wc -l)" = 1 ] && echo "$out" | grep -q -- "$1" || { echo "$out"; return 1; }
    out=$("$build/examples/train_charlm" --text "$2" --master nobody:at:all 2>&1)
    [ $? = 2 ] && [ "$(echo "$out" | wc -l)" = 1 ] || { echo "$out"; return 1; }
}
demo_refuses_a_text_that_it_cannot_learn() {
    printf '%8191s' 'all work' >"$work/short text"
    mkdir "$work/empty"
    refused_with_one_sentence "/nonexistent cannot be read" /nonexistent &&
        refused_with_one_sentence "short text is too short: it has 8191 characters" "$work/short text" &&
        refused_with_one_sentence "empty is too short: it has 0 characters" "$work/empty"
}
demo_learns_the_users_text() { # the shortest one that there may be; a name with a blank
    printf '%8192s' ' all work and no play' >"$work/own text"
    STEPS=60 scripts/demo.sh "$build" "$work/own text" | tee "$work/own.log"
    grep -q "the text is $work/own text" "$work/own.log" && [ "$(grep -c 'finished: step 60' "$work/own.log")" = 4 ]
}

# ---- what a person may do to the demo ----
demo_refuses_numbers_that_are_none() {
    local steps
    for steps in 0 x -3 12 99999999 0800 0060; do
        STEPS=$steps scripts/demo.sh "$build" >"$work/number.out" 2>"$work/number.err"
        [ $? = 2 ] && [ ! -s "$work/number.out" ] && [ "$(wc -l <"$work/number.err")" = 1 ] &&
            grep -q "STEPS is '$steps': expected a number from" "$work/number.err" || return 1
    done
}
demo_ends_in_silence_at_ctrl_c() { # the terminal interrupts the whole process group, and nobody is left
    python3 - "$build" "$work/interrupted" <<'PYTHON'
import os, signal, subprocess, sys, time
build, log = sys.argv[1:]
with open(log, "w") as out:
    demo = subprocess.Popen(["scripts/demo.sh", build], stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a job in the background ignores it
deadline = time.monotonic() + 60
while "joined" not in open(log).read() and demo.poll() is None and time.monotonic() < deadline:
    time.sleep(0.02)
os.killpg(demo.pid, signal.SIGINT)
status = demo.wait(60)
noise = [line for line in open(log).read().splitlines() if not line[:7].strip().replace(".", "").isdigit()]
sys.exit(f"status {status}, printed {noise}" if status != 130 or noise else 0)
PYTHON
}

demo_says_so_when_the_late_peer_comes_after_the_end() { # it waits for others for ever, and the demo for it
    local late=$work/late
    mkdir -p "$late/bin" "$late/examples"
    ln -sf "$build/bin/ccoip_master" "$late/bin/"
    cat >"$late/examples/train_charlm" <<'WRAPPER'
#!/usr/bin/env bash
here=$(dirname "$0")
case " $* " in
*" peer-5 "*)
    until [ -e "$here/peer-1" ] && [ -e "$here/peer-2" ] && [ -e "$here/peer-4" ]; do sleep 0.05; done
    exec "$here/real" "$@"
    ;;
esac
name=$(echo " $* " | sed 's/.* --name \([^ ]*\) .*/\1/')
[ "$name" = peer-3 ] && exec "$here/real" "$@" # it is killed by its number
"$here/real" "$@"
status=$?
touch "$here/$name"
exit $status
WRAPPER
    chmod +x "$late/examples/train_charlm"
    ln -sf "$build/examples/train_charlm" "$late/examples/real"
    printf '%8192s' ' all work and no play' >"$work/late text"
    STEPS=60 timeout 120 scripts/demo.sh "$late" "$work/late text" >"$work/late.log" 2>&1
    [ $? = 1 ] && grep -q "peer-5 came after the others had finished: more than STEPS=60 are needed" "$work/late.log" ||
        { cat "$work/late.log"; return 1; }
}

check_each smallest_program_adds_up smallest_program_says_what_is_wrong each_sum_comes_out_of_a_queue_once \
    each_collective_says_what_it_has a_step_is_repeated_by_those_who_are_left \
    a_grid_sums_up_along_rows_and_columns each_ticket_is_drawn_once options_are_checked \
    loop_listing_compiles porting_listing_compiles loop_listing_runs quick_start_in_c demo_refuses_numbers_that_are_none \
    demo_ends_in_silence_at_ctrl_c demo_says_so_when_the_late_peer_comes_after_the_end \
    demo_refuses_a_text_that_it_cannot_learn demo_learns_the_users_text
check frozen_peer_comes_back_with_the_others_state with_trainers frozen_peer_comes_back_with_the_others_state
check frozen_peer_does_not_bring_an_old_run_back with_trainers frozen_peer_does_not_bring_an_old_run_back
check demo_survives_and_learns env STEPS=300 timeout 300 scripts/demo.sh "$build"
sum_up
