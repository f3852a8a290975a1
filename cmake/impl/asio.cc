// The only place where Asio's definitions are compiled; see cmake/Asio.cmake.
#include <boost/asio/impl/src.hpp>
