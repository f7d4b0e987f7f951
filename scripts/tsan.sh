#!/usr/bin/env bash
# The library's tests of shared state under ThreadSanitizer. Arguments replace the modules below.
# The standard library is not instrumented, so a test joins its threads by handle: the end of a thread::scope alone, a
# channel or a Mutex of the library is not always seen as an order.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/sanitizer.sh
[ $# -gt 0 ] || set -- ring:: pool::
export TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp:halt_on_error=1:${TSAN_OPTIONS:-}"
sanitized tsan "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" "$@"
