#!/usr/bin/env bash
# The library's tests under AddressSanitizer, with the leak check. Arguments replace the modules below.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/sanitizer.sh
[ $# -gt 0 ] || set -- mem:: ring:: pool:: mbuf::
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:${ASAN_OPTIONS:-}
sanitized asan "-Zsanitizer=address" "$@"
