#!/usr/bin/env bash
# Everything that must hold, step by step; each step tells its seconds. Ends at the first failure.
# TEST_LIMIT_SECONDS (1200): all of it may not take longer.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${TEST_LIMIT_SECONDS:-1200}
cargo=${CARGO:-cargo}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

step() {
    local name=$1 begin=$SECONDS
    shift
    echo "== $name"
    if ! "$@"; then
        echo "== $name: FAILED after $((SECONDS - begin)) s"
        exit 1
    fi
    echo "== $name: $((SECONDS - begin)) s"
}

# Skipped tests are told at the end, where they are seen.
cargo_test() {
    "$cargo" test 2>&1 | tee "$log"
}

step "layout" "$cargo" fmt --check
step "lints" "$cargo" clippy --quiet --all-targets -- -D warnings
step "docs" env RUSTDOCFLAGS=-Dwarnings "$cargo" doc --quiet --no-deps --lib
step "tests" cargo_test
step "address sanitizer" scripts/asan.sh
step "thread sanitizer" scripts/tsan.sh
step "loom" scripts/loom.sh

if grep -q '^skipped: ' "$log"; then
    echo "== $(grep -c '^skipped: ' "$log") skipped:"
    grep '^skipped: ' "$log" | sort -u
fi
if [ "$SECONDS" -gt "$limit" ]; then
    echo "== FAILED: $SECONDS s in all, over the limit of $limit s"
    exit 1
fi
echo "== all passed in $SECONDS s (limit $limit s)"
