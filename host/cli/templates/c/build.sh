#!/bin/sh
# Builds {{name}}.wasm. CC is a clang that has WebAssembly; in Debian: clang-19 lld-19
# libclang-rt-19-dev-wasm32 wasi-libc.
set -eu
cd "$(dirname "$0")"
# Debug data goes; names stay, so that a backtrace can be read.
"${CC:-clang-19}" --target=wasm32-wasi -mexec-model=reactor -std=c11 -Os -Wall -Wextra \
    -Wl,--strip-debug \
    handler.c bindings/message_handler.c bindings/message_handler_component_type.o -o core.wasm
oncue plugin componentize core.wasm -O {{name}}.wasm
rm core.wasm
