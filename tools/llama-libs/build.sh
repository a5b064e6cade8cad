#!/bin/sh
# Builds llama.cpp's libraries from pinned sources, for the machine that it runs on.
#
#   tools/llama-libs/build.sh OUT_DIR [WORK_DIR]
#
# OUT_DIR receives the libraries, every CPU variant as a backend of its own, the
# RPC backend with its server, and the licence. WORK_DIR (default: a temporary
# directory) keeps sources and objects, so that a second run only links. About 8
# minutes on two cores. From the environment:
#
#   JOBS    how many files compile at once (default: ninja's choice)
#   SERVER  1 to build llama-server too, which the speed is measured against
#
# Why not the packages alone: the same variant of this build computes f32
# embeddings 1.5 times as fast, and only it has RPC. docs/adr/0021 says more.
set -eu

version=0.3.36
package="llama_cpp_python-$version"
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e

[ $# -ge 1 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 64; }
repo=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
if [ $# -ge 2 ]; then
	mkdir -p "$2"
	work=$(cd "$2" && pwd)
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi

for tool in cmake ninja cc c++ python3 go; do
	command -v "$tool" >/dev/null || { echo "build.sh: $tool is missing" >&2; exit 69; }
done

# The client may rebuild a source archive's metadata, but hands over the archive
# as it was published; the digest is what is trusted.
archive="$work/$package.tar.gz"
[ -f "$archive" ] || python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$work" "llama-cpp-python==$version"
python3 - "$archive" "$sha256" <<'PY'
import hashlib, sys
got = hashlib.file_digest(open(sys.argv[1], "rb"), "sha256").hexdigest()
if got != sys.argv[2]:
    sys.exit(f"build.sh: {sys.argv[1]} has the SHA-256 {got}, pinned is {sys.argv[2]}")
PY
source="$work/$package/vendor/llama.cpp"
[ -d "$source" ] || tar -xzf "$archive" -C "$work" --exclude=.git "$package/vendor/llama.cpp"

# gcc 12 takes the tile configuration for dead stores, because its
# _tile_loadconfig does not say that it reads memory, and the worker dies of
# SIGILL in the first AMX product. The barrier makes the stores happen.
amx="$source/ggml/src/ggml-cpu/amx/mmq.cpp"
grep -q '__asm__.*_tile_loadconfig(&tc);' "$amx" ||
	sed -i 's/^\( *\)\(_tile_loadconfig(&tc);\)/\1__asm__ volatile("" ::: "memory"); \2/' "$amx"
grep -q '__asm__.*_tile_loadconfig(&tc);' "$amx" || {
	echo "build.sh: $amx loads its tile configuration in another way, look again" >&2
	exit 65
}

# The libraries' structs, against the binding's: a mismatch would be silent.
(cd "$repo" && go run ./engines/llama/internal/capi/layoutcheck) >"$work/layout.c"
cc -fsyntax-only -I "$source/include" -I "$source/ggml/include" "$work/layout.c" || {
	echo "build.sh: llama.h and engines/llama/internal/capi do not fit" >&2
	exit 65
}

# Names without versions and a search path of the libraries' own directory, so
# that the files can be copied anywhere; no path of this machine inside.
cmake -G Ninja -S "$source" -B "$work/build" -Wno-dev \
	-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
	-DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON \
	-DGGML_OPENMP=ON -DGGML_RPC=ON -DGGML_CCACHE=OFF \
	-DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
	-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
	-DLLAMA_BUILD_COMMON=ON -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON \
	-DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON \
	-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH="${RPATH:-\$ORIGIN}" \
	-DCMAKE_C_FLAGS="-ffile-prefix-map=$source=." -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$source=." \
	>"$work/configure.log"

# The backends are modules that nothing links to, so they are named by the build
# itself.
backends=$(ninja -C "$work/build" -t targets all | sed -n 's/^bin\/libggml-\(cpu-[a-z0-9_.]*\|rpc\)\.so:.*/ggml-\1/p')
programs="ggml-rpc-server ${SERVER:+llama-server}"
# shellcheck disable=SC2086 # lists of words
ninja -C "$work/build" ${JOBS:+-j"$JOBS"} llama $backends $programs >"$work/build.log" || {
	tail -n 20 "$work/build.log" >&2
	exit 70
}

for lib in ggml ggml-base llama $backends; do cp "$work/build/bin/lib$lib.so" "$out/"; done
for program in $programs; do cp "$work/build/bin/$program" "$out/"; done
if [ -n "${SERVER:-}" ]; then # it is linked with more than the worker is
	cp "$work/build/bin/"libllama-*.so "$work/build/bin/libmtmd.so" "$out/"
fi
cp "$source/LICENSE" "$out/LICENSE"
strip --strip-unneeded "$out/"*.so
for program in $programs; do strip "$out/$program"; done
echo "$out: $(find "$out" -name 'libggml-cpu-*.so' | wc -l) CPU variants, $(du -sh "$out" | cut -f1)"
# What the machine that runs them must have.
objdump -T "$out/"*.so | sed -n 's/.*(\(GLIBC\|GLIBCXX\|GOMP\)_\([0-9.]*\)).*/\1 \2/p' | sort -u -k1,1 -k2,2V |
	awk '{last[$1] = $2} END {for (l in last) print "needs " l " " last[l]}'
