// EXPECT: a view shows memory that its owner may change or free
// EXPECT: account
#include "tests/diagnostics/counter.h"

struct Deposit {
  using Reply = int64_t;
  std::string_view account;
};

class Ledger {
 public:
  int64_t handle_call(Deposit) { return 0; }
};

otp::Async<> client(otp::Server<Ledger> ledger) { co_await otp::call(ledger, Deposit{}); }
