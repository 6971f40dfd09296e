#!/usr/bin/env bash
# test_checks.sh [BUILD] - the checks must find what they are for: plants one breach after the other in a scratch copy and
# expects the rule to fail, and to pass again without it.  With BUILD also the rules of check_binary.sh.
# SPDX-License-Identifier: MIT
set -u
build=${1:+$(cd "$1" && pwd)}
cd "$(dirname "$0")/.."
. scripts/testing.sh
scratch=$work/tree
mkdir "$scratch"
cp -r CMakeLists.txt cmake scripts src include tests fuzz "$scratch"

# plant RULE FILE TEXT: makes FILE in the scratch copy; RULE must then fail, which it does not without.
plant() {
    aside "found: $1 in $2" planted "$@"
}
planted() {
    cp -r "$scratch" "$case/tree"
    mkdir -p "$(dirname "$case/tree/$2")"
    printf '%s\n' "$3" >"$case/tree/$2"
    python3 scripts/check_source.py "$case/tree" "$1" >"$case/out"
    grep -qx "FAIL $1" "$case/out" && grep -qx "PASS $1" "$work/before"
}
python3 scripts/check_source.py "$scratch" >"$work/before"

spdx='/* SPDX-License-Identifier: MIT */'
body() { # the text of a file with one function
    printf '%s\nvoid planted(char *a, char *b)\n{\n%s\n}\n' "$spdx" "$1"
}
for pair in wire:net/x.h core:wire/x.h session:master/x.h session:world/x.h world:session/x.h world:master/x.h session:net/x.h \
    master:net/x.h session:engine/x.h master:server/x.h engine:server/x.h server:session/x.h engine:api/x.h api:master/x.h \
    api:engine/links/link.h api:server/server_state.h \
    net:kernels/x.h collectives:net/x.h collectives:pccl.h; do
    plant includes_point_down "src/${pair%%:*}/planted.c" "$spdx"$'\n'"#include \"${pair#*:}\""
done
plant files_are_short src/core/planted.c "$spdx$(printf '\n%.0s;' {1..600})"
plant cmake_is_short cmake/planted.cmake "# $spdx$(printf '\n# %d' {1..300})"
plant functions_are_short src/core/planted.c "$(body "$(printf '    ;\n%.0s' {1..69})")"
plant functions_have_no_conditional_compilation src/core/planted.c "$(body $'#ifdef A\n    ;\n#endif')"
plant basenames_are_unique src/wire/status.h "$spdx"
for name in src/session/lanes.c src/master/statuq.h src/engine/conm.c tests/unit/test_conns.c \
    tests/sim/engines.c; do # lane, status, comm, test_conn, engine
    plant names_differ_by_more_than_a_letter "$name" "$spdx"
done
for line in 'c->calls.voted = true' 'c->running.count++' '++c->master.id' 'list_append(&c->links.all, a)' 'c->ops.at[0] = b' \
    'atomic_store(&op->end.returned.over, true)' 'struct comm_machine *m = &c->machine'; do
    plant owners_alone_write src/engine/planted.c "$(body "    $line;")"
done
for line in 's->view.world = 1' 's->ops.records++' 'heap_set(&s->slots.due, 1, 2)'; do # of a layer with rooms
    plant owners_alone_write src/session/group/planted.c "$(body "    $line;")"
done
for call in 'exit(1)' 'abort()' 'printf("x")' 'strcpy(a, b)' 'sprintf(a, "x")' 'alloca(4)'; do
    plant library_calls_nothing_forbidden src/net/planted.c "$(body "    $call;")"
done
plant nothing_sleeps tests/unit/planted.c "$(body '    usleep(1);')"
plant licence_is_named src/core/planted.c 'int planted;'
plant nothing_is_left_to_do src/core/planted.c "$spdx /* TODO */"

# plant_binary RULE WHAT COMMAND...: COMMAND breaks the scratch copy or the copied libraries; RULE must then fail.
plant_binary() {
    aside "found: $2" planted_binary "$1" "${@:3}"
}
planted_binary() {
    cp -r "$scratch" "$case/tree"
    mkdir "$case/lib"
    cp "$build/libpccl.so" "$build/libpccl.a" "$case/lib"
    (cd "$case/tree" && "${@:2}")
    ROOT=$case/tree RULES=$1 scripts/check_binary.sh "$case/lib" >"$case/out" 2>&1
    grep -qx "FAIL $1" "$case/out" && grep -qx "PASS $1" "$work/before.binary"
}
append() { # file text
    printf '%s\n' "$2" >>"$1"
}
impure() { # text: puts it in a pure file, and takes the others off the list
    append src/core/dtype.c "$1"
    echo src/core/dtype.c >scripts/pure_files.txt
}
if [ -n "$build" ]; then
    scripts/check_binary.sh "$build" >"$work/before.binary" 2>&1
    plant_binary exports "a name missing from the list" sed -i '/pcclInit/d' scripts/exported_symbols.txt
    plant_binary exports "a listed name that does not exist" append scripts/exported_symbols.txt pcclPlanted
    plant_binary archive "an internal name global in the archive" objcopy --globalize-symbol=log_line ../lib/libpccl.a
    plant_binary own_names "an internal name that clashes" objcopy --globalize-symbol=log_line ../lib/libpccl.a
    plant_binary globals "writable data that no list names" sed -i '/log_level_current/d' scripts/globals.txt
    plant_binary purity "a clock read in a pure file" impure \
        $'#include <time.h>\nlong planted(void);\nlong planted(void)\n{\n    return time(0);\n}'
    plant_binary purity "an allocation in a pure file" impure \
        $'#include <stdlib.h>\nvoid *planted(void);\nvoid *planted(void)\n{\n    return malloc(9);\n}'
    plant_binary purity "writable data in a pure file" impure \
        $'int planted(void);\nint planted(void)\n{\n    static int calls;\n    return ++calls;\n}'
    plant_binary headers "C11 in the public header" append include/pccl.h 'struct planted { union { int a; int b; }; };'
    plant_binary headers "a C++ keyword in the public header" append include/pccl.h 'extern int class;'
fi
count_asides

# Two files that call each other, and the same two in a line.
circles_are_found() {
    local folder=$work/circle/CMakeFiles/pccl_objects.dir/src/core back
    mkdir -p "$folder"
    echo 'void b(void); void a(void); void a(void) { b(); }' | gcc -c -x c - -o "$folder/a.c.o"
    for back in 'a();' ';'; do
        echo "void a(void); void b(void); void b(void) { $back }" | gcc -c -x c - -o "$folder/b.c.o"
        python3 scripts/check_circles.py "$work/circle" >"$work/circle.out"
        if [ "$back" = ';' ]; then
            grep -qx 'PASS no circle in src/core' "$work/circle.out" || return 1
        else
            grep -qx 'FAIL no circle in src/core' "$work/circle.out" && grep -q 'a.c calls b.c: b' "$work/circle.out" || return 1
        fi
    done
}
check_each circles_are_found

# Two rooms of which each calls the other, by files that do not.
circles_of_rooms_are_found() {
    local layer=$work/rooms/CMakeFiles/pccl_objects.dir/src/core back
    mkdir -p "$layer/low" "$layer/high"
    echo 'void top(void); void a(void); void top(void) { a(); }' | gcc -c -x c - -o "$layer/top.c.o"
    echo 'void b(void); void a(void); void a(void) { b(); }' | gcc -c -x c - -o "$layer/high/a.c.o"
    echo 'void b(void); void b(void) { }' | gcc -c -x c - -o "$layer/low/b.c.o"
    for back in 'd();' ';'; do
        echo "void c(void); void d(void); void c(void) { $back }" | gcc -c -x c - -o "$layer/low/c.c.o"
        echo 'void d(void); void d(void) { }' | gcc -c -x c - -o "$layer/high/d.c.o"
        python3 scripts/check_circles.py "$work/rooms" >"$work/rooms.out"
        if [ "$back" = ';' ]; then
            grep -qx 'PASS no circle among the rooms of src/core' "$work/rooms.out" || return 1
        else
            grep -qx 'FAIL no circle among the rooms of src/core' "$work/rooms.out" &&
                grep -q 'core/low calls high: d' "$work/rooms.out" || return 1
        fi
    done
}
check_each circles_of_rooms_are_found

# The whole check, with parts of our own in its place: what fails is named again at the end.
cat >"$work/parts" <<'PARTS'
part_named() {
    echo "SKIPPED one: not here"
    for i in $(seq 30); do echo "FAIL rule_$i"; done
    echo "3 passed, 30 failed"
    return 1
}
part_silent() { return 3; }
part_good() { echo "4 passed, 0 failed"; }
part_unit() { echo "FAIL early"; echo "0 passed, 1 failed"; return 1; }
part_wan() { # ends when what runs beside it has begun
    read -r _ <"$logs/pipe"
    echo "2 passed, 1 failed"
}
part_solver() {
    ! chrt -p $$ | grep -q SCHED_IDLE && echo "FAIL too soon" && echo "0 passed, 1 failed" && return 1
    echo >"$logs/pipe" # waits for the reader
    echo "FAIL too much"
    echo "3 passed, 1 failed"
    return 1
}
PARTS
sed -i "/^# Runs one part/r $work/parts" "$scratch/scripts/check.sh"
all_failures_are_named_at_the_end() {
    local i out=$work/check.out
    BUILD=$work/check "$scratch/scripts/check.sh" named silent good >"$out"
    [ $? = 1 ] && [ "$(tail -n 1 "$out")" = "7 passed, 31 failed" ] || { cat "$out"; return 1; }
    sed -i '1,/^all parts/d' "$out"
    for i in $(seq 30); do
        grep -qx "named: FAIL rule_$i" "$out" || return 1
    done
    grep -q '^silent: no test says so' "$out" && grep -q '^named: SKIPPED one: not here' "$out"
}
unknown_part_is_refused() { # a word mistyped is not a check that passed
    fails_saying "no part 'unti'" "$scratch/scripts/check.sh" unti
}
a_first_part_that_fails_is_the_last_that_runs() { # forty minutes of mutants say nothing new of a library whose unit tests fail
    local out=$work/first.out
    BUILD=$work/first "$scratch/scripts/check.sh" unit good silent >"$out"
    [ $? = 1 ] && [ "$(tail -n 1 "$out")" = "0 passed, 1 failed" ] && grep -q '^SKIPPED after the failure of unit: good silent;' "$out" ||
        { cat "$out"; return 1; }
    BUILD=$work/first "$scratch/scripts/check.sh" -k unit good >"$out"
    [ $? = 1 ] && [ "$(tail -n 1 "$out")" = "4 passed, 1 failed" ] || { cat "$out"; return 1; }
}
the_plan_tells_times_and_downloads_and_runs_nothing() {
    local out=$work/plan.out
    mv "$scratch/scripts/clang.sh" "$work" && printf '#!/bin/sh\nexit 1\n' >"$scratch/scripts/clang.sh" # nothing is installed yet
    chmod +x "$scratch/scripts/clang.sh"
    BUILD=$work/plan "$scratch/scripts/check.sh" --plan >"$out"
    mv "$work/clang.sh" "$scratch/scripts"
    grep -q '^time: about 45 min' "$out" && grep -q '^    python .*PyTorch' "$out" &&
        [ ! -e "$work/plan/logs/seconds" ] || { cat "$out"; return 1; }
    mkdir -p "$work/plan/logs" && printf 'good 61\nnamed 100\n' >"$work/plan/logs/seconds"
    BUILD=$work/plan "$scratch/scripts/check.sh" --plan good named >"$out" && grep -qx 'time: about 3 min, as in the last run here' "$out" &&
        ! grep -q PyTorch "$out" || { cat "$out"; return 1; }
    BUILD=$work/plan "$scratch/scripts/check.sh" good >"$out" && grep -qx 'good 0' "$work/plan/logs/seconds" &&
        grep -qx 'named 100' "$work/plan/logs/seconds"
}
parts_that_compute_run_beside_those_that_wait() { # and count like all others
    local out=$work/beside.out
    mkdir -p "$work/beside/logs" && mkfifo "$work/beside/logs/pipe" || return 1
    BUILD=$work/beside "$scratch/scripts/check.sh" solver good wan >"$out"
    [ $? = 1 ] && [ "$(tail -n 1 "$out")" = "9 passed, 2 failed" ] && grep -qx "solver: FAIL too much" "$out" || { cat "$out"; return 1; }
    BUILD=$work/beside "$scratch/scripts/check.sh" solver good >"$out" # nothing to be beside
    [ $? = 1 ] && grep -q '^solver: FAIL too soon' "$out" || { cat "$out"; return 1; }
}
# What `make test` relies on: a program runs again if it has changed, or has not passed, and its result counts all the same.
only_what_passed_and_is_unchanged_is_not_run_again() {
    local tree=$work/cached program=$work/cached/tests/unit/test_it said
    mkdir -p "$tree/tests/unit" "$work/cache"
    cached() { said=$(scripts/run_tests.sh -c "$work/cache" "$tree" tests/unit) || true; }
    write() { printf '#!/bin/sh\necho run >>%s\n%s\n' "$work/runs" "$1" >"$program" && chmod +x "$program"; }
    runs() { [ "$(grep -c '' "$work/runs")" = "$1" ] && [ "$(tail -n 1 <<<"$said")" = "$2" ] || { echo "$said"; return 1; }; }
    write 'echo "7 passed, 0 failed"' && cached && runs 1 "7 passed, 0 failed" && cached && runs 1 "7 passed, 0 failed" || return 1
    write 'echo "8 passed, 0 failed"' && cached && runs 2 "8 passed, 0 failed" || return 1
    write 'echo "8 passed, 1 failed"; exit 1' && cached && cached && runs 4 "8 passed, 1 failed" || return 1
    write 'echo "SKIPPED it: no"; echo "1 passed, 0 failed"' && cached && cached && runs 6 "1 passed, 0 failed"
}
check_each all_failures_are_named_at_the_end unknown_part_is_refused a_first_part_that_fails_is_the_last_that_runs \
    the_plan_tells_times_and_downloads_and_runs_nothing parts_that_compute_run_beside_those_that_wait \
    only_what_passed_and_is_unchanged_is_not_run_again
sum_up
