#pragma once

// Boost.JSON, compiled into the target //otp/base:json. Depend on that target and include this
// file; the library's own `boost/json/src.hpp` must stand in one translation unit of a program
// only.
#include <boost/json.hpp>

namespace otp {

namespace json = boost::json;

}  // namespace otp
