#!/usr/bin/env bash
# test_solver.sh BUILD [NETWORKS] - the library's linear programmes beside scipy's, on 2,000 drawn networks.
#
# scipy comes by pip, once, into an environment below BUILD; without it the test is skipped and says so.  The last line is
# "N passed, N failed".
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
build=$(cd "${1:?build directory}" && pwd)

python=$build/scipy/bin/python
[ -x "$python" ] || python3 -m venv "$build/scipy" >"$build/scipy.err" 2>&1 ||
    { echo "SKIPPED solver: python3-venv is not installed"; echo "0 passed, 0 failed"; exit; }
if ! "$python" -c 'import scipy.optimize' 2>/dev/null &&
        ! "$python" -m pip install -q --disable-pip-version-check scipy 2>"$build/scipy.err"; then
    tail -n 5 "$build/scipy.err"
    echo "SKIPPED solver: pip cannot install scipy"
    echo "0 passed, 0 failed"
    exit
fi
"$python" scripts/solver_oracle.py "$build/tests/unit/shares_main" "${2:-2000}"
