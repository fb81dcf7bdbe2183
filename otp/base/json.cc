#include "otp/base/json.h"

// The one place where the library's function bodies are compiled.
#include <boost/json/src.hpp>
