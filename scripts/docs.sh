#!/usr/bin/env bash
# docs.sh [FOLDER] - the site of all documents, the C header and the Python package, by Sphinx: build/docs/html/index.html.
#
# It fails if Sphinx warns of anything: a link that leads nowhere, a page that no index names, a docstring that cannot be read, a public
# name of Python that is missing.  torch need not be there.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/docs/html}
mkdir -p "$folder"
tools=build/docs/tools
python=$tools/bin/python

[ -x "$python" ] || python3 -m venv "$tools"
"$python" -m pip install -q --disable-pip-version-check sphinx furo myst-parser hawkmoth libclang cffi 2>build/docs/pip.err &&
    "$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall . 2>build/docs/pip.err || {
    tail -n 40 build/docs/pip.err
    exit 1
}
"$python" -m sphinx -q -E -W --keep-going -b html docs "$folder"
echo "$folder/index.html"
