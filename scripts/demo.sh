#!/usr/bin/env bash
# demo.sh BUILD [TEXT] - a run that survives: a master and four peers train a language model; one peer is killed, another
# joins late; in the end all hold the same bits.  Under a minute on two cores.
#
# TEXT: a file or directory to learn; by default the licences that every Debian machine has.  STEPS and BATCH in the
# environment change the length.  Exit status 0 if every claim that is printed holds, 2 if there is no text to learn.
# SPDX-License-Identifier: MIT
set -u
build=$(cd "${1:?build directory}" && pwd)
text=${2:-/usr/share/common-licenses}
steps=${STEPS:-1600}
batch=${BATCH:-64}
number() { # name value least most
    case $2 in
    '' | *[!0-9]* | 0?* | ????????*) ;; # with a 0 in front arithmetic takes it for octal
    *) [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] && return ;;
    esac
    echo "demo: $1 is '$2': expected a number from $3 to $4" >&2
    exit 2
}
number STEPS "$steps" 50 1000000
number BATCH "$batch" 1 4096
needed=8192 # characters; train_charlm says so too, but once per peer
if ! cat "$text" >/dev/null 2>&1 && ! ls "$text/" >/dev/null 2>&1; then
    echo "demo: the text $text cannot be read: name a file, or a directory of files, to learn from" >&2
    exit 2
fi
length=$(find -H "$text" -maxdepth 1 -type f -exec cat {} + 2>/dev/null | wc -c)
if [ "$length" -lt $needed ]; then
    echo "demo: the text $text is too short: it has $length characters, at least $needed are needed" >&2
    exit 2
fi
work=$(mktemp -d)
log=$work/log
touch "$log" "$work/master"
began=$(date +%s.%N)
pids=()
cleanup() {
    exec 2>/dev/null # the shell's own words about whom it kills
    for pid in "${pids[@]}"; do
        kill -9 "$pid" 2>/dev/null
    done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { # an event of this script, in the peers' format
    printf '%6.2f s  %-7s %s\n' "$(echo "$(date +%s.%N) $began" | awk '{ print $1 - $2 }')" demo "$*" | tee -a "$log"
}
give_up() {
    say "$*"
    exit 1
}

"$build/bin/ccoip_master" --listen 127.0.0.1:0 --log-level warn >"$work/master" 2>>"$log" &
master=$!
pids+=("$master")
until grep -q listening "$work/master"; do
    kill -0 "$master" 2>/dev/null || give_up "the master does not start"
    sleep 0.02
done
address=$(sed 's/.*listening at //' "$work/master")
say "master at $address; the text is $text"

exec 3> >(tee -a "$log")
declare -A peer
start_peer() { # name, peers to wait for
    "$build/examples/train_charlm" --master "$address" --text "$text" --steps "$steps" --batch "$batch" \
        --wait-for "$2" --name "$1" --began "$began" >&3 2>&1 3>&- &
    peer[$1]=$!
    pids+=($!)
}
for name in peer-1 peer-2 peer-3 peer-4; do
    start_peer $name 4
done

step_reached() { # the log shows this step or a later one
    awk -v want="$1" '$4 == "step" && $5 + 0 >= want { found = 1 } END { exit !found }' "$log"
}
await_step() {
    until step_reached "$1"; do
        kill -0 "${peer[peer-1]}" 2>/dev/null || give_up "peer-1 ended before step $1"
        sleep 0.05
    done
}
await_step $((steps * 30 / 100))
say "kill -9 peer-3 (process ${peer[peer-3]})"
{ # without the shell's own words about it
    kill -9 "${peer[peer-3]}"
    wait "${peer[peer-3]}"
} 2>/dev/null
await_step $((steps * 55 / 100))
say "peer-5 is started: it joins the run under way"
start_peer peer-5 2

status=0
for name in peer-1 peer-2 peer-4; do
    wait "${peer[$name]}" || { say "$name ended with status $?"; status=1; }
done
for _ in {1..100}; do # it ends with the others, or it came when they had gone and waits for others to come
    kill -0 "${peer[peer-5]}" 2>/dev/null || break
    sleep 0.1
done
if kill -0 "${peer[peer-5]}" 2>/dev/null; then
    {
        kill -9 "${peer[peer-5]}"
        wait "${peer[peer-5]}"
    } 2>/dev/null
    give_up "peer-5 came after the others had finished: more than STEPS=$steps are needed on this machine"
fi
wait "${peer[peer-5]}" || { say "peer-5 ended with status $?"; status=1; }
exec 3>&-
kill -TERM "$master"
wait "$master" || { say "the master ended with status $?"; status=1; }
until [ "$(grep -c 'finished: step' "$log")" -ge 4 ] || [ $status != 0 ]; do
    sleep 0.02 # the last lines are on their way through tee
done

hashes=$(sed -n 's/.*have hash //p' "$log" | sort | uniq -c)
echo
echo "parameters and optimiser state at the end (peers, hash):"
echo "$hashes"
if [ "$(echo "$hashes" | wc -l)" = 1 ] && [ "$(echo "$hashes" | awk '{ print $1 }')" = 4 ]; then
    echo "all four peers, the late one included, hold the same bits"
else
    echo "THE PEERS DIFFER"
    status=1
fi
grep -q 'goes on at step' "$log" || { echo "PEER-5 RECEIVED NOTHING"; status=1; }
grep -q 'the network knows more' "$log" || status=1
say "took $(echo "$(date +%s.%N) $began" | awk '{ printf "%.0f", $1 - $2 }') s"
exit $status
