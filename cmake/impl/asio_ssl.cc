// The only place where Asio's TLS definitions are compiled; see cmake/Asio.cmake.
#include <boost/asio/ssl/impl/src.hpp>
