#!/usr/bin/env bash
# Makes captures/demo.pcap: real traffic of two kernel network stacks over a veth pair, captured by tcpdump.
#
#   namespace "left"                          namespace "right"
#   wire   192.0.2.1    2001:db8::1   <-veth->   wire   192.0.2.2    2001:db8::2
#   tagged 198.51.100.1   VLAN 42     <-veth->   tagged 198.51.100.2
#
# "tagged" is a TAP device, so the packets are the kernel's own; scripts/demo_traffic.py puts the 802.1Q tag on and
# takes it off. (A kernel VLAN interface would do the same, but not every kernel has them.)
#
# Needs root, ip, ping, ethtool, tcpdump, python3. Usage: scripts/make-demo-capture.sh [OUTPUT]
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-captures/demo.pcap}
traffic=$PWD/scripts/demo_traffic.py

[ "$(id -u)" = 0 ] || { echo "$0: needs root (network namespaces)" >&2; exit 1; }
for tool in ip ping ethtool tcpdump python3; do
    command -v "$tool" >/dev/null || { echo "$0: needs $tool" >&2; exit 1; }
done

left=bldemo-l-$$
right=bldemo-r-$$
work=$(mktemp -d)
pids=()

cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    ip netns del "$left" 2>/dev/null || true
    ip netns del "$right" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

on() { ip netns exec "$@"; }
# In the background in a namespace; `ip netns exec` becomes the program, so $! is the program's own id.
start() {
    ip netns exec "$@" &
    pids+=($!)
}
# wait_for FILE TEXT: at most 10 s.
wait_for() {
    for _ in $(seq 100); do
        if grep -q "$2" "$1" 2>/dev/null; then return 0; fi
        sleep 0.1
    done
    echo "$0: no '$2' within 10 s; the log says:" >&2
    cat "$1" >&2
    return 1
}

ip netns add "$left"
ip netns add "$right"
ip link add wire netns "$left" address 02:00:00:00:00:01 type veth peer name wire netns "$right" address 02:00:00:00:00:02

for side in "$left 1" "$right 2"; do
    read -r ns n <<<"$side"
    on "$ns" ip link set lo up
    # Frames as they would be on a cable: whole checksums, no super-frames.
    on "$ns" ethtool -K wire tx off tso off gso off gro off >/dev/null
    # No router here: nobody asks for one.
    on "$ns" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/all/accept_ra; echo 0 >/proc/sys/net/ipv6/conf/default/accept_ra
                    echo 0 >/proc/sys/net/ipv6/conf/wire/router_solicitations
                    echo 0 >/proc/sys/net/ipv6/conf/default/router_solicitations'
    on "$ns" ip addr add "192.0.2.$n/24" dev wire
    on "$ns" ip addr add "2001:db8::$n/64" dev wire nodad
done

# tcpdump wants an interface that is up; without a carrier nothing is sent yet.
on "$left" ip link set wire up
start "$left" tcpdump -i wire -n -s 0 -U --immediate-mode -Z root -w "$work/demo.pcap" 2>"$work/tcpdump.log"
dump=${pids[0]}
wait_for "$work/tcpdump.log" "listening on"

on "$right" ip link set wire up

for side in "$left 1" "$right 2"; do
    read -r ns n <<<"$side"
    start "$ns" python3 "$traffic" tagger wire tagged 42 "02:00:00:00:42:0$n" >"$work/tagger.$n" 2>&1
    wait_for "$work/tagger.$n" ready
    on "$ns" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/tagged/disable_ipv6'
    on "$ns" ip addr add "198.51.100.$n/24" dev tagged
    on "$ns" ip link set tagged up
done
start "$right" python3 "$traffic" server >"$work/server" 2>&1
wait_for "$work/server" ready
# Duplicate address detection of the link-local addresses takes a second or two, and belongs in the capture.
sleep 2.5

on "$left" ping -q -n -c 8 -i 0.05 192.0.2.2
on "$left" ping -q -n -c 3 -i 0.05 -s 1472 -M do 192.0.2.2
on "$left" ping -q -n -c 8 -i 0.05 2001:db8::2
on "$left" ping -q -n -c 2 -i 0.05 -s 1452 -M do 2001:db8::2
on "$left" ping -q -n -c 10 -i 0.05 198.51.100.2
on "$left" python3 "$traffic" client 192.0.2.2 --get 40000 --put 12000 --datagrams 20
on "$left" python3 "$traffic" client 2001:db8::2 --get 15000 --put 3000 --datagrams 10
on "$left" python3 "$traffic" client 198.51.100.2 --get 0 --put 0 --datagrams 15
sleep 0.3

kill -INT "$dump"
wait "$dump"
grep -q '^0 packets dropped by kernel' "$work/tcpdump.log" || { cat "$work/tcpdump.log" >&2; exit 1; }
cp "$work/demo.pcap" "$out"
chmod 644 "$out"
echo "$out: $(stat -c %s "$out") bytes, $(grep captured "$work/tcpdump.log")"
