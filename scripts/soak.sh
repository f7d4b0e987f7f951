#!/usr/bin/env bash
# The long loops: the tests, optimised, with BURSTLINE_SOAK=1 (support::run::loops reads it), again and again.
#   SOAK_SECONDS (3600)    no new pass begins after this; there is always one
#   SOAK_LOOPS             at most this many turns in a loop; unset: what each test asks for
#   SOAK_LIMIT_SECONDS     if set: a failure when all of it, with the build, takes longer
# Arguments go to cargo test: scripts/soak.sh --test NAME
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
seconds=${SOAK_SECONDS:-3600}
export BURSTLINE_SOAK=1

# One pass in the time that is left. timeout signals the group that it made, nobody else.
limited() {
    if [ -z "${SOAK_LIMIT_SECONDS:-}" ]; then
        "$@"
        return
    fi
    local left=$((SOAK_LIMIT_SECONDS - SECONDS)) code=0
    [ "$left" -gt 0 ] || left=1
    timeout --kill-after=10 "$left" "$@" || code=$?
    [ "$code" != 124 ] || echo "soak: FAILED: over the limit of $SOAK_LIMIT_SECONDS s"
    return "$code"
}

pass=0
limited "$cargo" test --release --no-run --quiet "$@"
built=$SECONDS
echo "soak: built in $built s"
while [ "$pass" = 0 ] || [ $((SECONDS - built)) -lt "$seconds" ]; do
    pass=$((pass + 1))
    begin=$SECONDS
    limited "$cargo" test --release "$@"
    echo "soak: pass $pass: $((SECONDS - begin)) s"
done
echo "soak: $pass passes in $SECONDS s"
