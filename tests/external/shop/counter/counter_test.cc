#include "counter/counter.h"

#include <catch2/catch.hpp>

TEST_CASE("the counter adds the amount it is given", "[counter]") {
  Counter counter({.start = 40});
  CHECK(counter.handle_call(Increment{.by = 2}) == 42);
}
