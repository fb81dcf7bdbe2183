// EXPECT: a shared pointer to data that can change would be shared by two processes
// EXPECT: Order
#include <memory>
#include <vector>

#include "tests/diagnostics/counter.h"

struct Order {
  std::vector<std::shared_ptr<int>> lines;
};

class Desk {
 public:
  void handle_cast(Order) {}
};

void client(otp::Server<Desk> desk) { otp::cast(desk, Order{}); }
