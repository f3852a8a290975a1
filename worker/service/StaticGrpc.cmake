# berth_worker_grpc: the protocol's code and gRPC, static if possible, else as berth_grpc has it.
# It must be the only way by which gRPC and protobuf get into the program: two copies of protobuf in
# one process end it at start.
add_library(berth_worker_grpc INTERFACE)

pkg_check_modules(BERTH_GRPC_STATIC QUIET grpc++_unsecure)
set(archives)
set(missing)
if(BERTH_GRPC_STATIC_FOUND AND NOT BERTH_SANITIZE)
  # pkg-config repeats the many parts of Abseil; those that gRPC does not list itself come last.
  set(names protobuf ${BERTH_GRPC_STATIC_STATIC_LIBRARIES}
      upb re2 cares address_sorting z absl_synchronization absl_statusor absl_time)
  list(REMOVE_ITEM names rt atomic dl m pthread)
  list(REMOVE_DUPLICATES names)
  foreach(name IN LISTS names)
    find_library(BERTH_STATIC_${name} "lib${name}.a" HINTS ${BERTH_GRPC_STATIC_STATIC_LIBRARY_DIRS})
    mark_as_advanced(BERTH_STATIC_${name})
    if(BERTH_STATIC_${name})
      list(APPEND archives "${BERTH_STATIC_${name}}")
    else()
      list(APPEND missing "${name}")
    endif()
  endforeach()
else()
  set(missing grpc++_unsecure)
endif()

if(NOT missing)
  add_dependencies(berth_worker_grpc berth_grpc berth_proto)
  target_link_libraries(berth_worker_grpc INTERFACE
    -Wl,--start-group $<TARGET_FILE:berth_grpc> $<TARGET_FILE:berth_proto> ${archives}
    -Wl,--end-group Threads::Threads ${CMAKE_DL_LIBS} rt)
  message(STATUS "berth-worker links gRPC statically")
else()
  target_link_libraries(berth_worker_grpc INTERFACE berth_grpc)
  message(STATUS "berth-worker links gRPC's shared libraries (no archives of: ${missing})")
endif()
