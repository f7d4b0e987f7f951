# Sourced by asan.sh, tsan.sh and loom.sh.

# some_tests COMMAND...: a run of cargo test in which no test matched proves nothing, and is a failure in the gate.
some_tests() {
    local log code=0
    log=$(mktemp)
    "$@" 2>&1 | tee "$log" || code=$?
    if [ "$code" = 0 ] && ! grep -qE '^running [1-9]' "$log"; then
        echo "skipped: no test matched: $*"
        [ "${BURSTLINE_REQUIRE_ALL:-}" != 1 ] || code=1
    fi
    rm -f "$log"
    return "$code"
}

# sanitized NAME RUSTFLAGS FILTER...
# The sanitizers are not stable in rustc: RUSTC_BOOTSTRAP opens them on a stable toolchain. --target keeps them out of
# build scripts and macros; a target directory of its own keeps the ordinary build warm. The standard library itself is not
# instrumented (its sources cannot be rebuilt here), so what happens inside it is not seen.
sanitized() {
    local name=$1 flags=$2
    shift 2
    if [ "$(uname -m)" != x86_64 ]; then
        echo "skipped: $name: only set up for x86_64"
        [ "${BURSTLINE_REQUIRE_ALL:-}" != 1 ]
        return
    fi
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}-$name" \
        some_tests "${CARGO:-cargo}" test --quiet --target x86_64-unknown-linux-gnu --lib -- "$@"
}
