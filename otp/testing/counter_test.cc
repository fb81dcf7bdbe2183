// The whole file of docs/testing.md, word for word (examples_test.py compares).

#include <catch2/catch.hpp>

#include "otp/behaviour/gen_server.h"
#include "otp/testing/test.h"

namespace {

struct Increment {
  using Reply = int;
  int by = 1;
};

class Counter {
 public:
  struct Args {
    int start = 0;
  };
  explicit Counter(Args args) : count_(args.start) {}
  int handle_call(Increment message) { return count_ += message.by; }

 private:
  int count_;
};

}  // namespace

TEST_CASE("a counter counts", "[counter]") {
  otp::test::in_simulator([]() -> otp::Async<void> {
    auto counter = co_await otp::test::start_supervised<Counter>({.start = 40});
    int sum = co_await otp::call(counter, Increment{.by = 2});
    otp::test::expect(sum == 42, "40 and 2");
  });
}
