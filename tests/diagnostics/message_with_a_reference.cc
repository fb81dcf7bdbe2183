// EXPECT: a reference would be shared by two processes: hold the value
// EXPECT: Named
#include <string>

#include "otp/base/shareable.h"

struct Named {
  int count = 0;
  const std::string& name;
};

void send() { otp::require_shareable<Named>(); }
