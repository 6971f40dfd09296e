#!/usr/bin/env bash
# docs_python.sh [FOLDER] - the reference of the Python package, of its docstrings, by Sphinx: build/docs/python/index.html.
#
# It fails if Sphinx finds anything wrong with them, or a public name is missing.  torch need not be there.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/docs/python}
mkdir -p "$folder"
tools=build/docs/tools
python=$tools/bin/python

[ -x "$python" ] || python3 -m venv "$tools"
"$python" -m pip install -q --disable-pip-version-check sphinx cffi 2>build/docs/pip.err &&
    "$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall . 2>build/docs/pip.err || {
    tail -n 40 build/docs/pip.err
    exit 1
}
"$python" -m sphinx -q -E -W --keep-going -b html docs/guide/python/reference "$folder"
echo "$folder/index.html"
