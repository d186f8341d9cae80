# Turns a root file system with Debian's packages of ROCm into the layout of AMD's
# images: all of ROCm in /opt/rocm, its release in .info/version, RCCL with its CMake
# package, and no MPI. Arguments: the root file system, the wheel of an RCCL.
set -eu
root=$1 wheel=$2
rm -rf "$root/build" "$root/opt/venv" "$root/opt/builder" "$root/usr/.info"
to=$root/opt/rocm-6.1.0
mkdir -p "$to/bin" "$to/lib/cmake/rccl" "$to/include" "$to/.info" "$to/share" "$to/amdgcn"
ln -s rocm-6.1.0 "$root/opt/rocm"
echo 6.1.0-82 > "$to/.info/version"
from=$root/usr/lib/x86_64-linux-gnu
for name in hipcc hipconfig hipify-perl rocm_agent_enumerator rocminfo; do mv "$root/usr/bin/$name" "$to/bin/"; done
for name in amd_comgr hip hsa oam rocm_smi; do mv "$root/usr/include/$name" "$to/include/"; done
for name in libamd_comgr libamdhip64 libhiprtc libhiprtc-builtins libhsa-runtime64 liboam librocm_smi64; do mv "$from/$name".so* "$to/lib/"; done
for name in amd_comgr hip hip-lang hiprtc hsa-runtime64 rocm_smi; do mv "$from/cmake/$name" "$to/lib/cmake/"; done
mv "$root/usr/share/hip" "$to/share/"
llvm=$(basename "$(echo "$root"/usr/lib/llvm-*)")
ln -s "/usr/lib/$llvm" "$to/llvm"
ln -s "/usr/lib/$llvm" "$to/lib/llvm"
ln -s "/usr/lib/$llvm/lib/clang/${llvm#llvm-}/amdgcn/bitcode" "$to/amdgcn/bitcode"

# The CMake packages state where Debian has them: one folder deeper.
prefix='get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)'
find "$to/lib/cmake" -name '*.cmake' | while read -r file; do
  sed -i -e 's#\.\./\.\./\.\./\.\./#../../../#g' -e 's#/usr/lib/x86_64-linux-gnu/cmake#/opt/rocm/lib/cmake#g' -e 's#lib/x86_64-linux-gnu#lib#g' "$file"
  sed -i "0,/$prefix/{/$prefix/d}" "$file"
done

python3 - "$wheel" "$to" <<'PY'
import os, sys, zipfile
wheel, to = zipfile.ZipFile(sys.argv[1]), sys.argv[2]
os.mkdir(to + "/include/rccl")
for name, path in ("rccl/include/rccl/rccl.h", "/include/rccl/rccl.h"), ("rccl/lib/librccl.so.1", "/lib/librccl.so.1"):
    with open(to + path, "wb") as f:
        f.write(wheel.read(name))
PY
ln -s librccl.so.1 "$to/lib/librccl.so"
cat > "$to/lib/cmake/rccl/rccl-config.cmake" <<'CMAKE'
get_filename_component(ROCM_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(rccl_INCLUDE_DIR "${ROCM_PATH}/include")
set(rccl_INCLUDE_DIRS "${rccl_INCLUDE_DIR}")
if(NOT TARGET roc::rccl)
  add_library(roc::rccl SHARED IMPORTED)
  set_target_properties(roc::rccl PROPERTIES IMPORTED_LOCATION "${ROCM_PATH}/lib/librccl.so.1" IMPORTED_SONAME librccl.so.1 INTERFACE_INCLUDE_DIRECTORIES "${rccl_INCLUDE_DIR}")
endif()
set(rccl_LIBRARY roc::rccl)
set(rccl_LIBRARIES roc::rccl)
CMAKE
echo /opt/rocm/lib > "$root/etc/ld.so.conf.d/rocm.conf"
chroot "$root" /sbin/ldconfig
