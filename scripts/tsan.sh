#!/usr/bin/env bash
# The library's tests of shared state under ThreadSanitizer. Arguments replace the modules below.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/sanitizer.sh
[ $# -gt 0 ] || set -- ring:: pool::
export TSAN_OPTIONS=halt_on_error=1:${TSAN_OPTIONS:-}
sanitized tsan "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" "$@"
