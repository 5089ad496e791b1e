#!/usr/bin/env bash
# Run the tests of the compiled kernels on emulated CPUs, which stop at any instruction that such a CPU lacks.
#
# usage: tests/emulated.sh CPU...
#   nehalem   x86-64 of 2008: the portable level alone
#   haswell   x86-64 of 2013: AVX2, no AVX-512
#   aarch64   64-bit ARM: NEON. A Python and the extension for it are put together under build/
#
# Needs Debian 12 with qemu-user, for aarch64 also cmake and g++-aarch64-linux-gnu, and the environment of `make install`.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$PWD/build/emulated
venv=$(realpath "${VENV:-.venv}")
pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check)
# Where Haswell has more than qemu can do (none of it is for programs to use), say so here rather than in warnings.
haswell=Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid
# NEON and no more. On qemu's "max", with SVE, OpenBLAS raises floating-point exceptions out of nothing.
aarch64=cortex-a72

# Make $1 a Python that runs emulated by the command behind it, together with all that it starts as sys.executable.
wrap() {
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$1"
    chmod +x "$1"
}

x86() {  # NAME CPU
    # Being beside the environment's own files makes it that environment.
    mkdir -p "$work/$1" && ln -sfn "$venv/lib" "$work/$1/lib" && ln -sf "$venv/pyvenv.cfg" "$work/$1/pyvenv.cfg"
    python=$work/$1/bin/python
    wrap "$python" qemu-x86_64 -cpu "$2" -0 "$python" "$venv/bin/python"
}

# Debian's Python and the wheels of PyPI for ARM, unpacked and not installed: nothing outside of build/ changes.
arm_python() {
    local lists=$root/apt debs=$root/debs apt
    rm -rf "$root" && mkdir -p "$lists/partial" "$debs"
    apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$lists"
        -o Dir::State::Status=/dev/null -o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache= -o APT::Sandbox::User=root)
    "${apt[@]}" update
    (cd "$debs" && "${apt[@]}" download libc6 libexpat1 libffi8 libgcc-s1 libpython3.11-dev libpython3.11-minimal \
        libpython3.11-stdlib libstdc++6 python3.11-minimal zlib1g)
    for deb in "$debs"/*; do dpkg-deb -x "$deb" "$root"; done
    "${pip[@]}" install --constraint constraints.txt --target "$root/site" --python-version 3.11 --only-binary :all: \
        --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 \
        hypothesis nanobind numpy pytest safetensors scipy threadpoolctl
    touch "$root/.ready"
}

arm() {
    root=$work/aarch64
    if [ ! -e "$root/.ready" ] || [ "$0" -nt "$root/.ready" ] || [ constraints.txt -nt "$root/.ready" ]; then arm_python; fi
    python=$root/usr/bin/python
    wrap "$python" qemu-aarch64 -cpu "$aarch64" -L "$root" -0 "$python" "$root/usr/bin/python3.11"
    # CMake asks that Python for the names, and gets the compiler of this machine for that one.
    cmake -S . -B "$root/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CXX_FLAGS="-I$root/usr/include" \
        -DPython_EXECUTABLE="$python" -DPython_INCLUDE_DIR="$root/usr/include/python3.11" \
        -Dnanobind_DIR="$root/site/nanobind/cmake" >/dev/null
    cmake --build "$root/build" --parallel 2 >/dev/null
    rm -rf "$root/site/ccq_core" && cp -r ccq_core "$root/site"
    cmake --install "$root/build" --prefix "$root/site" >/dev/null
    # Before the checkout, which has no extension for ARM; -P and its variable keep the current folder from coming first.
    export PYTHONPATH=$root/site:$PWD PYTHONSAFEPATH=1
}

run() {  # CPU: in a subshell
    case $1 in
        nehalem) levels="portable numpy"; x86 nehalem Nehalem ;;
        haswell) levels="avx2 portable numpy"; x86 haswell "$haswell" ;;
        aarch64) levels="neon portable numpy"; arm ;;
    esac
    # OpenBLAS must look at the emulated CPU, and its threads would only wait for each other.
    unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE CCQ_SIMD_LEVEL
    export OPENBLAS_NUM_THREADS=1
    found=$("$python" -c "from ccq_core import simd; print(*simd.levels())")
    [ "$found" = "$levels" ] || { echo "$1 should have the levels $levels, but has $found" >&2; return 1; }
    echo "$1: $levels"
    # Processes that fork with threads are beyond qemu-user.
    skipped="behind_a_fork"
    if [ "$1" = haswell ]; then skipped+=" or portable"; fi  # which is that of Nehalem
    "$python" -X faulthandler -m pytest -q -p no:cacheprovider -k "not ($skipped)" -m "not long_when_emulated" \
        tests/core/test_{kernels,scan,quantizer,index,table,latents}.py
}

[ $# -gt 0 ] || set -- help
for cpu in "$@"; do
    case $cpu in
        nehalem | haswell | aarch64) ;;
        *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done

# All at once, for each uses one processor; what they say comes in order.
mkdir -p "$work"
jobs=()
for cpu in "$@"; do
    (run "$cpu") >"$work/$cpu.log" 2>&1 &
    jobs+=($!)
done
status=0
for i in "${!jobs[@]}"; do
    wait "${jobs[i]}" || status=1
    cat "$work/${@:i+1:1}.log"
done
exit $status
