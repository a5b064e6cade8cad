# CMake's toolchain: zig, for the platform that is named as releases name it. What
# zig itself is to compile for comes from build.sh, in ZIG_TARGET.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG_PLATFORM)

if (ZIG_PLATFORM STREQUAL "linux-amd64")
	set(CMAKE_SYSTEM_NAME Linux)
	set(CMAKE_SYSTEM_PROCESSOR x86_64)
elseif (ZIG_PLATFORM STREQUAL "linux-arm64")
	set(CMAKE_SYSTEM_NAME Linux)
	set(CMAKE_SYSTEM_PROCESSOR aarch64)
elseif (ZIG_PLATFORM STREQUAL "windows-amd64")
	set(CMAKE_SYSTEM_NAME Windows)
	set(CMAKE_SYSTEM_PROCESSOR x86_64)
else ()
	message(FATAL_ERROR "no system is known for ZIG_PLATFORM ${ZIG_PLATFORM}")
endif ()

set(CMAKE_C_COMPILER "${CMAKE_CURRENT_LIST_DIR}/zig-cc")
set(CMAKE_CXX_COMPILER "${CMAKE_CURRENT_LIST_DIR}/zig-c++")
set(CMAKE_AR "${CMAKE_CURRENT_LIST_DIR}/zig-ar")
set(CMAKE_RANLIB "${CMAKE_CURRENT_LIST_DIR}/zig-ranlib")

# Nothing of the building machine is linked.
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
