#!/bin/sh
# Records the output of the installed CUDA compiler for kernels.cu, library.cu
# and limits.ptx into a folder named for its release. Needs no GPU.
# Usage: CUDA_HOME=/usr/local/cuda ./record.sh
set -eu
cd "$(dirname "$0")"
nvcc="${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"
bin="$(dirname "$nvcc")"
release="$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')"
out="cuda$release"
objects="$(mktemp -d)"
trap 'rm -r "$objects"' EXIT
mkdir -p "$out"

compile() { # log, object, then nvcc's arguments
  log="$1" object="$2"
  shift 2
  "$nvcc" -Xptxas -v "$@" -o "$objects/$object" >"$out/$log" 2>&1
}

for arch in 75 80 86 89 90 90a 100 120a; do
  define=""
  if [ "$arch" = 90a ]; then define="-DWGMMA"; fi
  compile "kernels.sm_$arch.log" "k.$arch.o" $define -gencode "arch=compute_$arch,code=sm_$arch" -c kernels.cu
  "$bin/cuobjdump" -res-usage "$objects/k.$arch.o" >"$out/kernels.sm_$arch.resusage.txt"
done
for arch in 75 80 86 87 88 89 90 100 103 110 120 121; do
  sed "s/^\.target.*/.target sm_$arch/" limits.ptx >"$objects/limits.ptx"
  (cd "$objects" && "$bin/ptxas" -v "-arch=sm_$arch" limits.ptx -o limits.cubin) >"$out/limits.sm_$arch.log" 2>&1
done
assemble() { # log, what sed does to deprecated.ptx
  sed "$2" deprecated.ptx >"$objects/k.ptx"
  (cd "$objects" && "$bin/ptxas" -v -arch=sm_75 k.ptx -o k.cubin) >"$out/$1" 2>&1 || true
}
assemble deprecated.log ""
assemble broken.log "s/%r2/%q/"
assemble newer.log "s/^.version.*/.version 99.0/"
compile multi.log m.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -c kernels.cu
compile maxrregcount.log r.o -arch=sm_90 -maxrregcount=24 -Xptxas --warn-on-spills,--warn-on-local-memory-usage -c kernels.cu
compile occupancy_sweep.log s.o -O3 -arch=sm_90 -c occupancy_sweep.cu
compile gmem-only.log e.o -arch=sm_90 -c library.cu
compile rdc-library.log lib.o -arch=sm_90 -rdc=true -c library.cu
compile rdc-caller.log caller.o -arch=sm_90 -rdc=true -DKERNEL -c library.cu
"$nvcc" -Xnvlink -v -arch=sm_90 -dlink "$objects/caller.o" "$objects/lib.o" -o "$objects/link.o" >"$out/nvlink.log" 2>&1
"$bin/cuobjdump" -res-usage "$objects/link.o" >"$out/nvlink.resusage.txt"
