#!/usr/bin/env bash
# Instructions a packet of each kind of benches/laps.rs, by valgrind: `kind<TAB>instructions`. The difference of two runs, so
# that what a program does before and after its laps falls out. Counts do not depend on what else the machine does.
#
# count-instructions.sh [KIND…]   all kinds where none is named; `count-instructions.sh > benches/instructions.txt` keeps them.
# LAPS_PROGRAM: an already built benches/laps.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
short=2000 long=12000

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
program=${LAPS_PROGRAM:-}
if [ -z "$program" ]; then
    # As the release profile, but without cargo: a bench would build what only the tests need, for minutes.
    rlib=$("${CARGO:-cargo}" build --release --lib --message-format=json --quiet |
        sed -n 's/.*"\([^"]*libburstline\.rlib\)".*/\1/p' | tail -n 1)
    program=$dir/laps
    "${RUSTC:-rustc}" --edition 2024 -C opt-level=3 -C codegen-units=1 -L "dependency=$(dirname "$rlib")/deps" \
        --extern "burstline=$rlib" benches/laps.rs -o "$program"
fi

count() {
    valgrind --tool=callgrind --callgrind-out-file="$dir/out" "$program" "$1" "$2" >"$dir/log" 2>&1 || { cat "$dir/log" >&2 && return 1; }
    sed -n 's/^\(summary\|totals\): //p' "$dir/out" | tail -n 1
}

echo "# Instructions a packet: scripts/count-instructions.sh > benches/instructions.txt; $("${RUSTC:-rustc}" --version)"
"$program" | while IFS=$'\t' read -r kind pkts; do
    if [ $# != 0 ] && [[ " $* " != *" $kind "* ]]; then continue; fi
    few=$(count "$kind" "$short")
    many=$(count "$kind" "$long")
    awk -v kind="$kind" -v n="$((many - few))" -v pkts="$(((long - short) * pkts))" 'BEGIN { printf "%s\t%.2f\n", kind, n / pkts }'
done
