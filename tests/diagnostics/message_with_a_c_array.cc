// EXPECT: a C array is no value: hold a std::array
// EXPECT: numbers
#include "otp/base/shareable.h"

struct Numbers {
  int count = 0;
  int numbers[3] = {};
};

void send() { otp::require_shareable<Numbers>(); }
