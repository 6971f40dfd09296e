#!/usr/bin/env bash
# test_setup.sh - setup.sh on systems that lack something: what it installs, and what it tells those who may not install.
#
# A system is a folder of programs: links to this one's shell tools, and scripts that stand for compilers and for apt.
# SPDX-License-Identifier: MIT
set -u -o pipefail
cd "$(dirname "$0")/.."
. scripts/testing.sh

program() { # name, text: a script of the system
    printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
system() { # programs...: what root has, beside an apt that notes what it is asked to install
    local name
    rm -rf "$work/bin" "$work/installed" "$work/updated"
    mkdir "$work/bin"
    for name in awk bash cat dirname /bin/echo env grep sed sort tail touch xargs; do
        ln -s "$(command -v "$name")" "$work/bin"
    done
    for name in "$@"; do
        program "$name" ''
    done
    program apt-get 'case "$*" in *update*) touch '"$work"'/updated ;; *'"${refused:-/}"'*) exit 100 ;;
        *) for word; do echo "$word"; done >'"$work"'/installed ;; esac'
    program id 'echo 0'
}
lists() { # packages...: what apt's lists have before the first update, and a newer clang after it
    program apt-cache 'have="'"$*"'"; [ ! -e '"$work"'/updated ] || have="$have clang-98"
        case $1 in pkgnames) printf "%s\n" $have clang-99 ;; show) [[ " $have " == *" $2 "* ]] ;; esac'
}
setup() { PATH=$work/bin scripts/setup.sh "$@" 2>&1; }

what_is_there_is_not_asked_for() { # make as a user says nothing of packages
    system gcc cmake ninja && lists && [ -z "$(setup build)" ] && [ ! -e "$work/installed" ]
}
root_gets_what_is_missing() {
    system gcc && lists cmake ninja-build && [ "$(setup build)" = "setup: installing cmake ninja-build" ] &&
        grep -qx cmake "$work/installed" && grep -qx ninja-build "$work/installed"
}
names_are_those_of_this_release() { # Ubuntu 22.04 has one of the two
    system gcc cmake ninja && lists gcc clang libclang-rt-14-dev llvm && setup fuzz >"$work/said" && grep -qx clang "$work/installed" &&
        ! grep -q '|' "$work/installed" "$work/said"
}
the_newest_clang_is_one_that_the_renewed_lists_have() { # 99 is only named by another package
    system gcc cmake ninja clang && lists gcc && setup check && grep -qx clang-98 "$work/installed"
}
a_user_is_told_a_command_that_apt_takes() {
    local command
    system && lists gcc libc6-dev cmake ninja-build && program id 'echo 1000' || return 1
    setup build >"$work/said" && return 1
    grep -q 'you are not root' "$work/said" && [ ! -e "$work/installed" ] &&
        command=$(sed -n 's/^    apt update && apt install --no-install-recommends //p' "$work/said") &&
        [ "$command" = "cmake gcc libc6-dev ninja-build" ] || return 1
    # On a system whose lists are there these names are packages.
    if apt-cache show cmake >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        apt-get install --simulate --no-install-recommends $command >/dev/null
    fi
}
a_user_without_lists_is_told_one_name_of_each() { # a container before its first update
    system gcc cmake ninja && lists && program id 'echo 1000' && fails_saying 'apt install .* clang' setup fuzz &&
        fails_saying 'recommends [^|]*$' setup fuzz
}
a_system_without_apt_is_told_the_names() {
    system gcc ninja && rm "$work/bin/apt-get" && fails_saying 'missing here: cmake (Debian' setup build
}
what_is_only_wished_for_stops_nobody() { # no network, no root: the tests that use it are skipped
    refused=clang-98 system gcc cmake ninja clang && lists gcc g++ python3 && setup check >"$work/said" && [ -e "$work/updated" ] &&
        grep -q 'some of it is skipped' "$work/said" && grep -qx g++ "$work/installed" || return 1
    system gcc cmake ninja clang g++ python3 && lists gcc mandoc && program id 'echo 1000' && setup check >"$work/said" &&
        grep -q 'apt install .* mandoc' "$work/said" && grep -q 'some of it is skipped' "$work/said"
}
what_is_needed_and_cannot_be_had_is_an_error() {
    refused=cmake system gcc ninja && lists gcc cmake && fails_saying 'could not install' setup build
}
an_unknown_part_is_refused() {
    system gcc cmake ninja && lists && fails_saying "unknown part 'chekc'" setup chekc
}
the_newest_clang_is_so_by_number() {
    local name
    system
    for name in clang-9:9.0.1 clang-14:14.0.6 clang:14.0.6 clang-100:100.1.0; do
        program "${name%:*}" "echo ${name#*:}"
    done
    [ "$(PATH=$work/bin scripts/clang.sh)" = clang ] && [ "$(PATH=$work/bin scripts/clang.sh --newest)" = clang-100 ]
}

check_each what_is_there_is_not_asked_for root_gets_what_is_missing names_are_those_of_this_release \
    the_newest_clang_is_one_that_the_renewed_lists_have a_user_is_told_a_command_that_apt_takes \
    what_is_only_wished_for_stops_nobody what_is_needed_and_cannot_be_had_is_an_error \
    a_user_without_lists_is_told_one_name_of_each a_system_without_apt_is_told_the_names an_unknown_part_is_refused \
    the_newest_clang_is_so_by_number
sum_up
