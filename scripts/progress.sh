# progress.sh - sourced by check.sh and test.sh: a line on the terminal that says what runs, for how long, and what it does now.
#
# The line is written on a terminal only, and removed when the command ends.
# SPDX-License-Identifier: MIT

progress_now() { # LOG FOLDER: the last line of the newest of LOG and the builds' logs
    local newest
    newest=$(ls -t "$1" "$2"/*/build.log 2>/dev/null | head -n 1)
    tail -c 400 "$newest" 2>/dev/null | tr -d '\r' | grep -a . | tail -n 1 | sed 's/^result \([0-9]*\) \([0-9]*\) \([0-9]*s\) /\3 /' | tr -cd '[:print:]'
}
progress_show() { # NAME EXPECTED LOG FOLDER: until the process that asks for it ends it
    local begin=$SECONDS width
    while sleep 1; do
        width=$(tput cols 2>/dev/null || echo 80)
        printf '\r\033[K%.*s' $((width - 1)) "$(printf '%-10s %5d s%s  %s' "$1" $((SECONDS - begin)) "${2:+ of about $2}" "$(progress_now "$3" "$4")")"
    done
}
# Runs a command, whose output goes to LOG, with its progress on the terminal; the status is the command's.
progress_of() { # NAME EXPECTED LOG FOLDER COMMAND...
    local shown="" status
    if [ -t 1 ]; then
        progress_show "${@:1:4}" &
        shown=$!
    fi
    "${@:5}" >"$3" 2>&1
    status=$?
    if [ -n "$shown" ]; then
        kill "$shown" 2>/dev/null
        wait "$shown" 2>/dev/null
        printf '\r\033[K'
    fi
    return $status
}
