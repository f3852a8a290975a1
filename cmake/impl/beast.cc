// The only place where Beast's definitions are compiled; see cmake/Asio.cmake.
#include <boost/beast/src.hpp>
