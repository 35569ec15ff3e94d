#!/bin/sh
# Builds {{name}}.wasm. Installs componentize-py beside the project unless it is on PATH.
set -eu
PATH="$PWD/.venv/bin:$PATH"
if ! command -v componentize-py >/dev/null; then
    python3 -m venv .venv
    .venv/bin/pip install --quiet --requirement requirements.txt
fi
componentize-py -d wit -w message-handler componentize app -o {{name}}.wasm
