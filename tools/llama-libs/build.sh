#!/bin/sh
# Builds llama.cpp's libraries from pinned sources with pinned tools, on Linux.
#
#   tools/llama-libs/build.sh PLATFORM OUT_DIR [WORK_DIR]
#
# PLATFORM is linux-amd64, linux-arm64 or windows-amd64; every one can be built on
# any machine, and has the same bytes on each: SHA256SUMS names them. OUT_DIR
# receives the libraries, every CPU variant as a backend of its own, the RPC backend
# with its server, and the licence. WORK_DIR (default: a temporary directory) keeps
# tools, sources and objects, so that a second run only links; platforms may share
# one. About 6 minutes a platform on two cores. From the environment:
#
#   JOBS    how many files compile at once (default: ninja's choice)
#   SERVER  1 to build llama-server too, which the speed is measured against
#   TOOLS   a Python environment that requirements.txt is installed in already
#
# Why not the packages' libraries: these compute f32 embeddings 1.6 times as fast,
# and only they have RPC. docs/adr/0021 says more.
set -eu

[ $# -ge 2 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 64; }
here=$(cd "$(dirname "$0")" && pwd)
platform=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
if [ $# -ge 3 ]; then
	mkdir -p "$3"
	work=$(cd "$3" && pwd)
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
fail() {
	echo "build.sh: $1" >&2
	exit 70
}

# The oldest C library that is asked for is one that onnxruntime's builds run on too.
lib=lib so=.so exe="" platform_flags="" project=""
# Each library has a C++ runtime of its own inside, and keeps to it.
link_flags="-s -Wl,-Bsymbolic"
case "$platform" in
linux-amd64) target=x86_64-linux-gnu.2.28 ;;
linux-arm64) target=aarch64-linux-gnu.2.28 ;;
windows-amd64)
	target=x86_64-windows-gnu lib="" so=.dll exe=.exe link_flags=-s project="$here/windows.cmake"
	# Only what the headers declare is exported, as on other systems by intention.
	platform_flags="-fvisibility=hidden -include $here/exports.h"
	;;
*) fail "no target is known for $platform" ;;
esac

if [ -z "${TOOLS:-}" ]; then
	TOOLS="$work/tools"
	cmp -s "$here/requirements.txt" "$TOOLS/installed" || {
		rm -rf "$TOOLS"
		python3 -m venv "$TOOLS"
		"$TOOLS/bin/pip" install --disable-pip-version-check --no-input --quiet --require-hashes -r "$here/requirements.txt"
		cp "$here/requirements.txt" "$TOOLS/installed"
	}
fi
PATH="$TOOLS/bin:$PATH"
ZIG=$("$TOOLS/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name("zig"))')
ZIG_TARGET=$target
ZIG_GLOBAL_CACHE_DIR="$work/zig-cache" ZIG_LOCAL_CACHE_DIR="$work/zig-cache"
export PATH ZIG ZIG_TARGET ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR

# The client may rebuild a source archive's metadata, but hands over the archive
# as it was published; the digest is what is trusted.
package=$(sed -n 's/.*  \(llama_cpp_python-.*\)\.tar\.gz$/\1/p' "$here/SHA256SUMS")
archive="$package.tar.gz"
[ -f "$work/$archive" ] ||
	python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$work" "llama-cpp-python==${package#llama_cpp_python-}"
grep "  $archive\$" "$here/SHA256SUMS" | (cd "$work" && sha256sum --check --quiet) || fail "the sources are not those that are pinned"
source="$work/$package/vendor/llama.cpp"
[ -d "$source" ] || tar -xzf "$work/$archive" -C "$work" --exclude=.git "$package/vendor/llama.cpp"

# The libraries' structs, against the binding's: a mismatch would be silent.
(cd "$here/../.." && env -u GOOS -u GOARCH go run ./engines/llama/internal/capi/layoutcheck) >"$work/layout.c"
"$here/zig-cc" -c -o "$work/layout.o" -I "$source/include" -I "$source/ggml/include" "$work/layout.c" ||
	fail "llama.h and engines/llama/internal/capi do not fit"

# erff.h, as this machine's own processor and the oldest of its kind compute it.
for cpu in "" -mcpu=native; do
	# shellcheck disable=SC2086 # no word or one
	ZIG_TARGET="$(uname -m)-linux-gnu" "$here/zig-c++" -O3 $cpu -o "$work/erff_test" "$here/erff_test.cpp"
	"$work/erff_test" || fail "erff.h is not exact enough"
done

# ggml writes the commit that it finds into itself; around it there may be ours.
GIT_DIR="$work/no-repository"
export GIT_DIR

# Names without versions and a search path of the libraries' own directory, so
# that the files can be copied anywhere; no path of this machine inside. OpenMP is
# left out: zig has no runtime of it, and ggml's own threads are as fast. For -O3 zig
# has clang do -O2, which costs a tenth of the speed, so clang is told itself.
flags="-Xclang -O3 -g0 -fomit-frame-pointer -fno-sanitize=undefined -ffile-prefix-map=$source=. -include $here/erff.h $platform_flags"
cmake -G Ninja -S "$source" -B "$work/$platform" -Wno-author \
	-DCMAKE_TOOLCHAIN_FILE="$here/zig.cmake" -DZIG_PLATFORM="$platform" -DCMAKE_PROJECT_INCLUDE="$project" \
	-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
	-DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON \
	-DGGML_OPENMP=OFF -DGGML_RPC=ON -DGGML_CCACHE=OFF \
	-DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
	-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
	-DLLAMA_BUILD_COMMON=ON -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON \
	-DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON \
	-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH="${RPATH:-\$ORIGIN}" \
	-DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" \
	-DCMAKE_SHARED_LINKER_FLAGS="$link_flags" -DCMAKE_MODULE_LINKER_FLAGS="$link_flags" -DCMAKE_EXE_LINKER_FLAGS=-s \
	>"$work/configure-$platform.log" 2>&1 || fail "see $work/configure-$platform.log"

# A feature that the compiler does not know by the name that it was given would be
# missing from its variant in silence.
for march in $(ninja -C "$work/$platform" -t commands | sed -n 's/.* \(-march=armv[^ ]*\).*/\1/p' | sort -u); do
	"$here/zig-cc" "$march" -dM -E -x c /dev/null >"$work/macros"
	for feature in $(printf '%s\n' "$march" | tr + '\n' | sed -n '2,$p'); do
		case "$feature" in
		fp16) macro=FP16_VECTOR_ARITHMETIC ;;
		i8mm) macro=MATMUL_INT8 ;;
		*) macro=$(printf '%s\n' "$feature" | tr '[:lower:]' '[:upper:]') ;;
		esac
		grep -q " __ARM_FEATURE_$macro 1" "$work/macros" || fail "$march does not give $feature"
	done
done

# The backends are modules that nothing links to, so they are named by the build
# itself.
backends=$(ninja -C "$work/$platform" -t targets all | sed -n "s/^bin\/${lib}ggml-\(cpu-[a-z0-9_.]*\|rpc\)\\$so:.*/ggml-\1/p")
programs="ggml-rpc-server ${SERVER:+llama-server}"
# shellcheck disable=SC2086 # lists of words
ninja -C "$work/$platform" ${JOBS:+-j"$JOBS"} llama $backends $programs >"$work/build-$platform.log" || {
	tail -n 20 "$work/build-$platform.log" >&2
	exit 70
}

# ggml's call must take the overload of erff.h: the other would only be slower.
for object in "$work/$platform"/ggml/src/CMakeFiles/ggml-cpu-*.dir/ggml-cpu/ops.cpp.o*; do
	grep -q _ZL21ggml_vec_gelu_erf_f32iPfS_ "$object" || fail "$object computes GELU by ggml's own loop"
done

for name in ggml ggml-base llama $backends; do cp "$work/$platform/bin/$lib$name$so" "$out/"; done
for program in $programs; do cp "$work/$platform/bin/$program$exe" "$out/"; done
if [ -n "${SERVER:-}" ]; then # it is linked with more than the worker is
	cp "$work/$platform/bin/${lib}llama-"*"$so" "$work/$platform/bin/${lib}mtmd$so" "$out/"
fi
cp "$source/LICENSE" "$out/LICENSE"
! grep -lF -e "$work" -e "$here" "$out"/* || fail "they name paths of this machine"
echo "$out: $(find "$out" -name "${lib}ggml-cpu-*$so" | wc -l) CPU variants, $(du -sh "$out" | cut -f1)"

# Whoever changes the build pins what comes out anew: `make release-pin`.
grep "  $platform/" "$here/SHA256SUMS" | sed "s/  $platform\//  /" >"$work/due-$platform"
if [ -s "$work/due-$platform" ]; then
	(cd "$out" && sha256sum --check --quiet "$work/due-$platform") ||
		fail "these are not the bytes that $here/SHA256SUMS pins"
else
	echo "$here/SHA256SUMS pins nothing for $platform" >&2
fi
