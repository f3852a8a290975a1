# berth_worker_test(NAME WORKER target SOURCES files… [LIBRARIES …] [TIMEOUT seconds] [PREFIX text]
# [PROPERTIES …]): tests that start the program `target` by WorkerProcess, each on its own directory.
# berth_worker_client(NAME WORKER target) is the same for a program that is no test.
function(berth_worker_client name)
  cmake_parse_arguments(arg "" "WORKER" "" ${ARGN})
  target_sources(${name} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/worker_program.cc")
  add_dependencies(${name} ${arg_WORKER})
  target_link_libraries(${name} PRIVATE berth::compile berth_worker_process)
  target_compile_definitions(${name} PRIVATE BERTH_WORKER="$<TARGET_FILE:${arg_WORKER}>")
endfunction()

function(berth_worker_test name)
  cmake_parse_arguments(arg "" "WORKER;TIMEOUT;PREFIX" "SOURCES;LIBRARIES;PROPERTIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  berth_worker_client(${name} WORKER ${arg_WORKER})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gmock_main)
  gtest_discover_tests(${name} TEST_PREFIX "${arg_PREFIX}"
    PROPERTIES LABELS integration TIMEOUT ${arg_TIMEOUT} ${arg_PROPERTIES} DISCOVERY_TIMEOUT 60)
endfunction()
