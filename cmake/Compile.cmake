# Compiler settings of every berth target: warnings are errors, sanitizers by BERTH_SANITIZE.
# Targets link `berth::compile`; generated protobuf code does not (it is not warning-free).

option(BERTH_TESTS "Build the tests" ON)
option(BERTH_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(BERTH_COVERAGE "Instrument for gcov" OFF)
set(BERTH_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")

# Dev is the build of daily work: fast enough to run a model, quick to compile, with assertions.
# Where the build type is given on the command line (as the presets do), project() has already put an
# empty value into the cache.
if(NOT CMAKE_CXX_FLAGS_DEV)
  set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -D_GLIBCXX_ASSERTIONS" CACHE STRING "" FORCE)
endif()
if(NOT CMAKE_C_FLAGS_DEV)
  set(CMAKE_C_FLAGS_DEV "-O1 -g1" CACHE STRING "" FORCE)
endif()
set(CMAKE_EXE_LINKER_FLAGS_DEV "" CACHE STRING "")
set(CMAKE_SHARED_LINKER_FLAGS_DEV "" CACHE STRING "")
# A release keeps line tables for a readable backtrace; full debug information makes the first build
# longer than a newcomer waits.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
mark_as_advanced(CMAKE_CXX_FLAGS_DEV CMAKE_C_FLAGS_DEV CMAKE_EXE_LINKER_FLAGS_DEV
                 CMAKE_SHARED_LINKER_FLAGS_DEV)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(BERTH_CCACHE ccache)
mark_as_advanced(BERTH_CCACHE)
if(BERTH_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${BERTH_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${BERTH_CCACHE}")
endif()

add_library(berth_compile INTERFACE)
add_library(berth::compile ALIAS berth_compile)
target_compile_options(berth_compile INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wnull-dereference -Wimplicit-fallthrough -Wswitch
  -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of g++ 12 in std::string and std::variant, at -O1 and higher.
  target_compile_options(berth_compile INTERFACE
    -Wno-null-dereference -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow
    -Wno-array-bounds)
endif()
target_include_directories(berth_compile INTERFACE "${PROJECT_SOURCE_DIR}")

if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
endif()
if(BERTH_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
if(BERTH_FUZZ)
  # clang 14 cannot compile coroutines with -fsanitize=function (a part of undefined).
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=function)
  add_link_options(-fsanitize=address,undefined)
endif()

# Position independent code and executables everywhere: berthd runs for months with untrusted input.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" OR CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
endif()
