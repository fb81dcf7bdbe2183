#include "counter/counter.h"

#include <catch2/catch.hpp>

TEST_CASE("the counter adds the amount it is given", "[counter]") {
  shop::Counter counter({.start = 40});
  CHECK(counter.handle_call(shop::Increment{.by = 2}) == 42);
}
