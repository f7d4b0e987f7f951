#!/usr/bin/env bash
# The rings in every interleaving that loom finds.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/sanitizer.sh
[ $# -gt 0 ] || set -- ring::loom
RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}-loom" \
    some_tests "${CARGO:-cargo}" test --quiet --release --lib -- "$@"
