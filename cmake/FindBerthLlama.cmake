# Finds libllama, ggml and minja for berth-worker.
#
# Three places, in this order:
#   1. the user's own llama.cpp, when CMAKE_PREFIX_PATH (or llama_DIR) leads to its CMake package;
#   2. the release's own packages (libllama-dev), found the same way in /usr;
#   3. the private prefix that deploy/setup makes on releases which do not have them.
#
# Targets
#   berth::llama        headers and libraries of libllama and ggml; for berth-worker and its tests only.
#                       With the private prefix a program that links it uses the prefix's loader and C library.
#   berth::minja        headers of minja (chat templates).
#   berth::llama_paths  no library: only the definitions below, for code which has to know the places.
#
# Definitions (also CMake variables of the same name; both targets with `llama` carry them)
#   BERTH_GGML_BACKEND_DIR  directory of the backend plugins; empty when the backends are linked into ggml.
#                           Set it as a cache variable to use other plugins.
#   BERTH_LLAMA_LIB_DIR     directory of libllama.so and of what a device backend loads at run time.
#   BERTH_LLAMA_PRIVATE     1 when the private prefix is used, else 0.
#   BERTH_VULKAN_SOFTWARE_ICD  Vulkan driver description of the software device; empty where the prefix has none.
#
# Cache variables
#   BERTH_LLAMA_PREFIX      the private prefix, default /opt/berth/llama.

set(BERTH_LLAMA_PREFIX "/opt/berth/llama" CACHE PATH
    "Private prefix with libllama, as made by deploy/setup")
set(BERTH_GGML_BACKEND_DIR "" CACHE PATH
    "Directory of ggml's backend plugins; empty: the one that belongs to libllama")

set(_berth_backend_dir "${BERTH_GGML_BACKEND_DIR}")
set(BERTH_VULKAN_SOFTWARE_ICD "")

if(NOT TARGET berth_llama)
  add_library(berth_llama_paths INTERFACE)
  add_library(berth::llama_paths ALIAS berth_llama_paths)
  add_library(berth_llama INTERFACE)
  add_library(berth::llama ALIAS berth_llama)
  add_library(berth_minja INTERFACE)
  add_library(berth::minja ALIAS berth_minja)
  target_link_libraries(berth_llama INTERFACE berth_llama_paths)

  find_package(llama CONFIG QUIET)
  if(llama_FOUND)
    set(BERTH_LLAMA_PRIVATE 0)
    set(BERTH_LLAMA_VERSION "${LLAMA_VERSION}")
    set(BERTH_LLAMA_LIB_DIR "${LLAMA_LIB_DIR}")
    set(_berth_llama_origin "${llama_DIR}")
    target_link_libraries(berth_llama INTERFACE llama)
    # An installed berth-worker has to find a llama.cpp outside the system's directories again.
    set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
    if(NOT _berth_backend_dir AND GGML_BACKEND_DL)
      set(_berth_backend_dir "${GGML_BACKEND_DIR}")
    endif()
    file(GLOB _berth_icd "/usr/share/vulkan/icd.d/lvp_icd*.json")
    if(_berth_icd)
      list(GET _berth_icd 0 BERTH_VULKAN_SOFTWARE_ICD)
    endif()
  else()
    set(BERTH_LLAMA_PRIVATE 1)
    set(BERTH_LLAMA_LIB_DIR "${BERTH_LLAMA_PREFIX}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
    set(_berth_llama_origin "${BERTH_LLAMA_PREFIX}")
    set(_berth_include "${BERTH_LLAMA_PREFIX}/include/llama")
    file(GLOB _berth_loader "${BERTH_LLAMA_PREFIX}/usr/lib*/ld-linux-*.so.*")
    if(NOT EXISTS "${BERTH_LLAMA_PREFIX}/berth-prefix.stamp"
       OR NOT EXISTS "${BERTH_LLAMA_LIB_DIR}/libllama.so"
       OR NOT EXISTS "${_berth_include}/llama.h"
       OR NOT _berth_loader)
      message(FATAL_ERROR
        "libllama was not found: no CMake package llama, and no complete private prefix in ${BERTH_LLAMA_PREFIX}.\n"
        "Run deploy/setup (as root), or set CMAKE_PREFIX_PATH to your own llama.cpp installation, "
        "or BERTH_LLAMA_PREFIX to the directory that was given to deploy/setup --prefix.")
    endif()
    if(BERTH_LLAMA_PREFIX MATCHES "[ ,;]")
      message(FATAL_ERROR "BERTH_LLAMA_PREFIX must not contain spaces, commas or semicolons: ${BERTH_LLAMA_PREFIX}")
    endif()
    list(GET _berth_loader 0 _berth_loader)
    file(STRINGS "${BERTH_LLAMA_PREFIX}/berth-packages.txt" _berth_line REGEX "^libllama0 ")
    string(REGEX REPLACE "^libllama0 ([^ ]+) .*" "\\1" BERTH_LLAMA_VERSION "${_berth_line}")

    target_include_directories(berth_llama SYSTEM INTERFACE "${_berth_include}")
    # libm and libgomp are named so that the prefix's own are loaded; -rpath must be DT_RPATH, as only that
    # is also used for the dependencies of the libraries. The loader belongs to the prefix's C library.
    target_link_libraries(berth_llama INTERFACE
      "-Wl,--push-state,--no-as-needed -L${BERTH_LLAMA_LIB_DIR} -lllama -lggml -lggml-base -lm -l:libgomp.so.1 -Wl,--pop-state")
    target_link_options(berth_llama INTERFACE
      "-Wl,--allow-shlib-undefined"
      "-Wl,-rpath-link,${BERTH_LLAMA_LIB_DIR}"
      "-Wl,--disable-new-dtags,-rpath,${BERTH_LLAMA_LIB_DIR}"
      "-Wl,--dynamic-linker=${_berth_loader}")
    # A prefix that was updated in place must relink what was linked against the old one.
    set_property(TARGET berth_llama APPEND PROPERTY
      INTERFACE_LINK_DEPENDS "${BERTH_LLAMA_PREFIX}/berth-packages.txt")

    if(NOT _berth_backend_dir)
      file(GLOB _berth_backend_dir "${BERTH_LLAMA_LIB_DIR}/ggml/backends*")
    endif()
    if(EXISTS "${BERTH_LLAMA_PREFIX}/share/berth/vulkan-software.json")
      set(BERTH_VULKAN_SOFTWARE_ICD "${BERTH_LLAMA_PREFIX}/share/berth/vulkan-software.json")
    endif()
  endif()

  find_path(BERTH_MINJA_INCLUDE_DIR minja/chat-template.hpp
            HINTS "${BERTH_LLAMA_PREFIX}/include/minja"
            DOC "Directory that has minja/chat-template.hpp")
  if(NOT BERTH_MINJA_INCLUDE_DIR)
    message(FATAL_ERROR "minja/chat-template.hpp was not found: run deploy/setup (as root), "
                        "or set BERTH_MINJA_INCLUDE_DIR to the directory that has minja/.")
  endif()
  target_include_directories(berth_minja SYSTEM INTERFACE "${BERTH_MINJA_INCLUDE_DIR}")

  target_compile_definitions(berth_llama_paths INTERFACE
    "BERTH_GGML_BACKEND_DIR=\"${_berth_backend_dir}\""
    "BERTH_LLAMA_LIB_DIR=\"${BERTH_LLAMA_LIB_DIR}\""
    "BERTH_LLAMA_VERSION=\"${BERTH_LLAMA_VERSION}\""
    "BERTH_LLAMA_PRIVATE=${BERTH_LLAMA_PRIVATE}"
    "BERTH_VULKAN_SOFTWARE_ICD=\"${BERTH_VULKAN_SOFTWARE_ICD}\"")
  message(STATUS "libllama ${BERTH_LLAMA_VERSION} from ${_berth_llama_origin}, plugins in ${_berth_backend_dir}")
endif()

set(BerthLlama_FOUND TRUE)
