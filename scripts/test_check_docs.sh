#!/usr/bin/env bash
# test_check_docs.sh - check_docs.py must find what it is for: plants one breach after the other in a copy of the tree and expects
# the rule to fail, which it does not without.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
. scripts/testing.sh
shopt -s extglob
copy() { # TREE: without hidden folders and what was built
    mkdir "$1"
    cp -r ./!(build*) "$1"
}
broken() { # RULE COMMAND...: COMMAND, run in a copy, breaks RULE
    copy "$case/tree"
    (cd "$case/tree" && "${@:2}")
    ! python3 scripts/check_docs.py "$case/tree" "$1" && grep -qx "PASS $1" "$work/before"
}
breach() { # RULE WHAT COMMAND...
    aside "found: $2" broken "$1" "${@:3}"
}
say() { # FILE TEXT: a line more
    printf '\n%s\n' "$2" >>"$1"
}

copy "$work/tree"
python3 scripts/check_docs.py "$work/tree" >"$work/before"
doc=docs/internals/TESTING.md
subject() { # SUBJECT: a repository whose last commit says so
    git init -q && git add -A && git -c user.name=x -c user.email=x@x commit -qm 'docs: begin' &&
        git -c user.name=x -c user.email=x@x commit -q --allow-empty -m "$1"
}
breach public_text_is_plain "a sentence that begins with a pronoun" say README.md 'Who reads this is lost.'
breach public_text_is_plain "a long sentence" say README.md "$(printf 'One %.0s' {1..31})."
breach public_text_is_plain "a private word" say README.md 'The operation was given up.'
breach public_text_is_plain "at all, for on all members" say README.md 'It fails at all.'
breach subjects_are_imperative "a subject without an area" subject 'Fix a thing'
breach subjects_are_imperative "a subject that tells the past" subject 'docs: fixed a thing'
breach subjects_are_imperative "a subject that is long" subject "docs: fix $(printf 'x%.0s' {1..70})"
breach lines_are_short "a line of 111 columns" say $doc "$(printf 'x%.0s' {1..111})"
breach blocks_have_a_language "a block of no language" say $doc $'```\nmake\n```'
breach links_resolve "a link to no file" say $doc '[x](NOTHING.md)'
breach links_resolve "a link to no heading" say $doc '[x](RULES.md#nothing)'
breach documents_are_indexed "a document that the README does not name" say docs/PLANTED.md '# Planted'
breach documents_are_indexed "a document that its wing does not name" say docs/guide/PLANTED.md '# Planted'
breach decisions_are_numbered "two decisions of one number" say docs/internals/decisions/0001-planted.md '# 1. Planted'
breach decisions_are_numbered "a decision whose title has another number" sed -i '1s/1/7/' docs/internals/decisions/0001-*.md
breach paths_exist "a path that is gone" mv src/core/dtype.h src/core/planted.h
breach paths_exist "a file's name that nothing has" say $doc 'See `planted.c`.'
breach paths_exist "a program that is not built" say $doc 'See `build/bench/bench_planted`.'
breach names_exist "a call that does not exist" say $doc 'Call `pcclPlanted`.'
breach names_exist "a variable of the environment that nobody reads" say $doc 'Set `PCCL_PLANTED`.'
breach names_exist "a call in a listing that does not exist" say $doc $'```c\npcclPlanted();\n```'
breach tests_exist "a test that is gone" say $doc 'See `fault/test_kill: planted`.'
breach tests_exist "a test program that is gone" say $doc 'See `fault/test_planted: a_death`.'
breach tests_exist "a shortened name that no test has" say $doc 'See `planted_test...`.'
breach functions_exist "a function that is in another file" say $doc 'See `src/core/dtype.c: frame_put`.'
breach mutants_exist "a mutant that does not exist" say $doc 'Mutants: NAIVE, PLANTED.'
breach mutants_exist "a mutant that no document names" sed -i 's/X(NAIVE)/X(NAIVE) X(PLANTED)/' src/core/mutant.h
breach mutations_exist "a mutation that no model has" sed -i 's/Mutations: NOTOMB/Mutations: NOTOMB, PLANTED/' docs/internals/RULES.md
breach mutations_exist "a mutation whose line is gone" sed -i '/-DNOTOMB/d' verify/formation.pml
breach mutations_exist "a variant that no model has" say docs/internals/RULES.md 'Variants: PLANTED.'
breach messages_are_described "a message of the wire that is not described" sed -i 's/MEASURED/PLANTED/' docs/internals/PROTOCOL.md
breach environment_is_described "a variable that is read and not described" \
    say src/core/dtype.c 'char *f(void) { return getenv("PCCL_PLANTED"); }'
breach environment_is_described "a variable that the Python package reads and no document describes" \
    say python/pccl/run.py 'X = os.environ.get("PCCL_PLANTED")'
breach commands_exist "a target that make does not have" say $doc $'```sh\nmake planted\n```'
breach commands_exist "a variable that make does not have" say $doc 'Say `make demo PLANTED=1`.'
breach commands_exist "a script that is gone" say $doc 'Run `scripts/planted.sh`.'
breach commands_exist "an option of the checks that is gone" say $doc 'Run `scripts/check.sh --planted unit`.'
breach commands_exist "a part of the checks that is gone" say $doc 'Run `scripts/check.sh unit planted`.'
breach commands_exist "an option of a script that is gone" say $doc 'Run `scripts/run_tests.sh -x BUILD tests/unit`.'
breach commands_exist "an option of a program that is gone" say $doc 'Run `sim_run --planted 3`.'
breach commands_exist "an option that the master does not have" say $doc $'```sh\nccoip_master --planted\n```'
breach commands_exist "an option of cmake that is gone" say $doc 'Run `cmake -S . -DPCCL_PLANTED=ON`.'
breach commands_exist "a command that nobody knows" say $doc $'```sh\nplanted --all\n```'
breach messages_exist "a message that nothing says" say docs/guide/TROUBLESHOOTING.md '`the planted master ... is gone`'
breach only_own_documents_are_named "a comment that names a foreign document" say src/core/dtype.c '/* see planted.md */'
breach only_own_documents_are_named "a document that names a foreign one" say $doc 'See the reliability reference.'
breach comments_name_files_that_exist "a comment that names a path that is gone" say src/core/dtype.c '/* see src/planted/x.c */'
breach comments_name_files_that_exist "a comment that names a file that is gone" say src/core/dtype.c '/* see planted.c */'
breach comments_name_files_that_exist "a comment that names a header of another folder" say src/core/dtype.c '/* see net/dtype.h */'
breach cited_rules_are_stated "a rule that is not stated" say src/core/dtype.c '/* P19 */'
breach cited_rules_are_stated "a rule of worlds that is not stated" say src/core/dtype.c '/* W19 */'
breach stated_rules_are_shown "a rule without a file that keeps it" sed -i 's/^Kept in/Kept at/' docs/internals/RULES.md
breach stated_rules_are_shown "a rule without a test" sed -i 's/^Shown by/Told by/' docs/internals/RULES.md
breach stated_rules_are_shown "a behaviour without a test" sed -i 's/^\* \*\*R7\*\*/* R7/' $doc
breach kept_rules_are_cited "a file that does not cite the rule that it keeps" sed -i 's/ (P2)//' src/session/group/hold.c
breach kept_rules_are_cited "a model that does not cite the rule that it keeps" sed -i 's/W7//g' verify/formation.pml
breach kept_rules_are_cited "a rule that another file keeps" sed -i '/^### P2/,/^### P3/s/hold\.c/launch.c/' docs/internals/RULES.md
count_asides
a_picture_that_is_not_what_its_data_gives_is_found() { # an include that is new, a measurement that is another
    local tree=$work/pictures
    cp -r "$work/tree" "$tree"
    python3 "$tree/scripts/pictures.py" --check | tail -n 1 | grep -qx "3 passed, 0 failed" || return 1
    echo '#include "kernels/kernels.h"' >>"$tree/src/topology/tour.c"
    fails_saying 'FAIL docs/pictures/layers.svg' python3 "$tree/scripts/pictures.py" --check || return 1
    sed -i 's/"error_ms": [0-9.]*/"error_ms": 1.5/' "$tree/docs/pictures/kill.json"
    fails_saying 'FAIL docs/pictures/kill.svg' python3 "$tree/scripts/pictures.py" --check || return 1
    sed -i 's/"wrong": 0}/"wrong": 3}/' "$tree/docs/pictures/kill.json"
    fails_saying 'a round gave wrong values' python3 "$tree/scripts/pictures.py" --check
}
check_each a_picture_that_is_not_what_its_data_gives_is_found
sum_up
