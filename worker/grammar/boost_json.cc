// Boost.JSON, compiled once: a program that is linked against the private prefix must not load the
// shared library of the machine.
#include <boost/json/src.hpp>
