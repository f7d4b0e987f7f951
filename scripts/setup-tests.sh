#!/usr/bin/env bash
# The programs that the tests call. As root: installs those that are missing (Debian, Ubuntu). Else: lists them.
# Never fails for want of a tool: a test that needs one says so itself.
set -euo pipefail

# program:package
tools=(tshark:tshark tcpdump:tcpdump ip:iproute2 tc:iproute2 ping:iputils-ping ethtool:ethtool nc:netcat-openbsd socat:socat
    python3:python3 valgrind:valgrind clang:clang gcc:gcc g++:g++ readelf:binutils objdump:binutils nm:binutils
    pkg-config:pkg-config strace:strace)

PATH=$PATH:/usr/sbin:/sbin
missing_packages() {
    local tool
    for tool in "${tools[@]}"; do
        command -v "${tool%%:*}" >/dev/null 2>&1 || echo "${tool##*:}"
    done | sort -u | tr '\n' ' '
}

missing=$(missing_packages)
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "setup: not root, so nothing is installed; tests that need these packages are skipped: $missing"
    echo "setup: sudo apt-get install -y $missing"
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: no apt-get here; tests that need these packages are skipped: $missing"
    exit 0
fi
echo "setup: installing $missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install() {
    # shellcheck disable=SC2086  # one word a package
    timeout 600 apt-get install -y -qq --no-install-recommends $missing >"$log" 2>&1 </dev/null
}
# The package lists may be old or absent.
if ! install; then
    timeout 120 apt-get update -qq >>"$log" 2>&1 </dev/null || true
    install || true
fi
missing=$(missing_packages)
if [ -n "$missing" ]; then
    echo "setup: could not install (no network?); tests that need these packages are skipped: $missing"
    tail -n 3 "$log"
fi
