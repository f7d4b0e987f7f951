#!/usr/bin/env bash
# Library, headers, pkg-config file and programs to $DESTDIR$PREFIX (/usr/local). Called by `make install`.
# INSTALL_LIB=1: no programs.
#
# The shared library is linked by the C compiler from the static one, with a version script and a soname, which rustc's own
# linking of a cdylib does not give.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=${PREFIX:-/usr/local}
to=${DESTDIR:-}$prefix
cargo=${CARGO:-cargo}
cc=${CC:-cc}
case $prefix in /*) ;; *) echo "install: PREFIX '$prefix' is not absolute" >&2; exit 1 ;; esac

target=$("$cargo" metadata --format-version 1 --no-deps --offline 2>/dev/null | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# The name of the shared library follows the C surface: BURSTLINE_1 in the version script.
abi=$(sed -n 's/^BURSTLINE_\([0-9]*\) {.*/\1/p' scripts/burstline.map)

"$cargo" build --release --quiet --lib
private=$("$cargo" rustc --release --lib --crate-type staticlib -- --print native-static-libs 2>&1 |
    sed -n 's/.*native-static-libs: //p' | tail -n 1)
# Said only when something was compiled; this is what std needs on Linux with glibc.
private=${private:--lgcc_s -lutil -lrt -lpthread -lm -ldl -lc}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
so=libburstline.so.$abi.0.0
"$cc" -shared -o "$work/$so" -Wl,-soname,"libburstline.so.$abi" -Wl,--version-script=scripts/burstline.map \
    -Wl,--whole-archive "$target/release/libburstline.a" -Wl,--no-whole-archive \
    -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now -Wl,-z,defs $private

cat >"$work/burstline.pc" <<PC
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: burstline
Description: Poll-mode packet drivers with burst receive and send
Version: $version
Libs: -L\${libdir} -lburstline
Libs.private: $private
Cflags: -I\${includedir}
PC

install -d "$to/lib/pkgconfig" "$to/include/burstline"
install -m 644 include/burstline.h "$to/include/"
install -m 644 include/burstline/* "$to/include/burstline/"
install -m 644 "$target/release/libburstline.a" "$to/lib/"
install -m 755 "$work/$so" "$to/lib/"
ln -sf "$so" "$to/lib/libburstline.so.$abi"
ln -sf "libburstline.so.$abi" "$to/lib/libburstline.so"
install -m 644 "$work/burstline.pc" "$to/lib/pkgconfig/"

if [ "${INSTALL_LIB:-}" != 1 ]; then
    "$cargo" build --release --quiet --bins
    install -d "$to/bin"
    for program in l2fwd burstline; do
        [ ! -x "$target/release/$program" ] || install -m 755 "$target/release/$program" "$to/bin/"
    done
fi
echo "installed burstline $version to $to"
