#!/usr/bin/env bash
# The library's tests of shared state under ThreadSanitizer. Arguments replace the modules below.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/sanitizer.sh
[ $# -gt 0 ] || set -- ring:: pool::
# Optimised, so that the standard library's small functions are compiled here, and seen.
export CARGO_PROFILE_TEST_OPT_LEVEL=2
export TSAN_OPTIONS=halt_on_error=1:suppressions=$PWD/scripts/tsan.supp:${TSAN_OPTIONS:-}
sanitized tsan "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg burstline_tsan" "$@"
