# Boost.Asio and Boost.Beast, compiled once.
#
#   berth::asio   every target that includes <boost/asio…> links this one
#   berth::asio_ssl  … <boost/asio/ssl…> links this one too (it brings berth::asio and OpenSSL)
#   berth::beast  every target that includes <boost/beast…> links this one (it brings berth::asio)
#
# *_SEPARATE_COMPILATION must be defined for every file that includes the library, or for none: a mixture
# breaks the one definition rule without a word from the linker. So nobody defines them by hand and nobody
# includes the headers without the target.
find_package(Boost 1.81 REQUIRED)

add_library(berth_asio STATIC "${CMAKE_CURRENT_LIST_DIR}/impl/asio.cc")
add_library(berth::asio ALIAS berth_asio)
target_compile_definitions(berth_asio PUBLIC BOOST_ASIO_SEPARATE_COMPILATION)
if(BERTH_SANITIZE MATCHES "thread")
  # The thread sanitizer does not understand fences; Asio's order comes from its mutexes anyway.
  target_compile_definitions(berth_asio PUBLIC BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
target_link_libraries(berth_asio PUBLIC Boost::headers Threads::Threads)

# Beast takes half a minute to compile, so it is built only where something links it.
add_library(berth_beast STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/impl/beast.cc")
add_library(berth::beast ALIAS berth_beast)
target_compile_definitions(berth_beast PUBLIC BOOST_BEAST_SEPARATE_COMPILATION)
target_link_libraries(berth_beast PUBLIC berth_asio)

# Asio's TLS streams over OpenSSL.
find_package(OpenSSL 3 REQUIRED)
add_library(berth_asio_ssl STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/impl/asio_ssl.cc")
add_library(berth::asio_ssl ALIAS berth_asio_ssl)
target_link_libraries(berth_asio_ssl PUBLIC berth_asio OpenSSL::SSL)
