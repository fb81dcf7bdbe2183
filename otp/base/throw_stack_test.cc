#include "otp/base/throw_stack.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace throw_stack_test {

struct Overdrawn {
  std::shared_ptr<int> account;
};

template <class E>
[[gnu::noinline]] void throw_first(E error) {
  asm volatile("" : : : "memory");
  throw error;
}

template <class E>
[[gnu::noinline]] void throw_second(E error) {
  asm volatile("" : : : "memory");
  throw error;
}

[[gnu::noinline]] void rethrow_elsewhere(const std::exception_ptr& error) {
  asm volatile("" : : : "memory");
  std::rethrow_exception(error);
}

template <class F>
std::exception_ptr caught(F f) {
  try {
    f();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::string stack_of(const std::exception_ptr& error) {
  auto stack = otp::throw_stack(error);
  return stack.has_value() ? stack->to_string() : "no stack";
}

struct ThrowsWhileUnwinding {
  std::string* inner;
  ~ThrowsWhileUnwinding() {
    try {
      throw_second(std::string("inner"));
    } catch (...) {
      *inner = stack_of(std::current_exception());
    }
  }
};

}  // namespace throw_stack_test

using namespace throw_stack_test;

TEST_CASE("the stack of a throw is known where it is caught", "[throw_stack]") {
  try {
    throw_first(std::runtime_error("no money"));
  } catch (...) {
    auto stack = otp::throw_stack();
    REQUIRE(stack.has_value());
    CHECK_THAT(stack->resolve()[0].function, Catch::Contains("throw_stack_test::throw_first"));
    CHECK(otp::exception_type_name(std::current_exception()) == "std::runtime_error");
    CHECK(otp::exception_message(std::current_exception()) == "no money");
  }
  CHECK_FALSE(otp::throw_stack().has_value());
}

TEST_CASE("exceptions that are no std::exception have a type and a stack", "[throw_stack]") {
  auto number = caught([] { throw_first(42); });
  CHECK(otp::exception_type_name(number) == "int");
  CHECK(otp::exception_message(number) == "42");
  CHECK_THAT(stack_of(number), Catch::Contains("throw_first"));
  auto text = caught([] { throw_first("a literal"); });
  CHECK(otp::exception_type_name(text) == "char const*");
  CHECK(otp::exception_message(text) == "a literal");
  auto own = caught([] { throw_first(Overdrawn{}); });
  CHECK(otp::exception_type_name(own) == "throw_stack_test::Overdrawn");
  CHECK(otp::exception_message(own).empty());
  CHECK(otp::exception_type_name(nullptr).empty());
}

TEST_CASE("an exception can be looked at without throwing it again", "[throw_stack]") {
  struct Base {
    virtual ~Base() = default;
    int first = 1;
  };
  struct Both : Base, std::runtime_error {
    Both() : std::runtime_error("both") {}
  };
  auto both = caught([] { throw_first(Both()); });
  REQUIRE(otp::exception_as<std::exception>(both) != nullptr);
  CHECK(std::string(otp::exception_as<std::exception>(both)->what()) == "both");
  CHECK(otp::exception_as<Base>(both)->first == 1);
  CHECK(otp::exception_as<std::logic_error>(both) == nullptr);
  CHECK(otp::exception_message(both) == "both");
  CHECK(otp::exception_as<std::exception>(caught([] { throw_first(1); })) == nullptr);
  const std::runtime_error pointed("pointer");
  auto pointer = caught([&] { throw_first(&pointed); });
  CHECK(otp::exception_as<std::exception>(pointer) == nullptr);
  CHECK(otp::exception_message(pointer).empty());
  CHECK(otp::exception_message(caught([] { throw_first(std::string("text")); })) == "text");
  CHECK(otp::exception_message(std::make_exception_ptr(7L)) == "7");
  CHECK(otp::exception_as<std::exception>(nullptr) == nullptr);
}

TEST_CASE("a rethrown exception keeps the stack of its first throw", "[throw_stack]") {
  auto first = caught([] { throw_first(std::runtime_error("x")); });
  auto second = caught([&] { rethrow_elsewhere(first); });
  auto third = caught([&] {
    try {
      rethrow_elsewhere(second);
    } catch (...) {
      throw;
    }
  });
  CHECK(third == first);
  CHECK_THAT(stack_of(third), Catch::Contains("throw_first"));
  CHECK_THAT(stack_of(third), !Catch::Contains("rethrow_elsewhere"));
}

TEST_CASE("nested exceptions have a stack each", "[throw_stack]") {
  std::string inner;
  auto outer = caught([&] {
    ThrowsWhileUnwinding guard{&inner};
    throw_first(std::string("outer"));
  });
  CHECK_THAT(inner, Catch::Contains("throw_second"));
  CHECK_THAT(stack_of(outer), Catch::Contains("throw_first"));
  try {
    throw_first(1);
  } catch (int) {
    try {
      throw_second(2);
    } catch (int) {
      CHECK_THAT(stack_of(std::current_exception()), Catch::Contains("throw_second"));
    }
    CHECK_THAT(stack_of(std::current_exception()), Catch::Contains("throw_first"));
  }
}

TEST_CASE("the stack is found on another thread and after other throws", "[throw_stack]") {
  auto error = caught([] { throw_first(std::runtime_error("kept")); });
  for (int again = 0; again < 1000; ++again) caught([] { throw_second(7); });
  std::string elsewhere;
  std::thread([&] { elsewhere = stack_of(error); }).join();
  CHECK_THAT(elsewhere, Catch::Contains("throw_first"));
}

TEST_CASE("an exception made without a throw has no stack, not an old one", "[throw_stack]") {
  caught([] { throw_first(42); });  // its memory is likely to be used again
  for (int again = 0; again < 100; ++again) {
    CHECK_FALSE(otp::throw_stack(std::make_exception_ptr(42)).has_value());
  }
  CHECK_FALSE(otp::throw_stack(std::exception_ptr()).has_value());
}

TEST_CASE("the thrown object is destroyed exactly once", "[throw_stack]") {
  auto account = std::make_shared<int>(1);
  auto error = caught([&] { throw_first(Overdrawn{account}); });
  CHECK(account.use_count() == 2);
  CHECK(caught([&] { rethrow_elsewhere(error); }) == error);
  CHECK(account.use_count() == 2);
  error = nullptr;
  CHECK(account.use_count() == 1);
}

TEST_CASE("throws on many threads at once keep their own stacks", "[throw_stack][thread]") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&, index] {
      std::vector<std::exception_ptr> kept;
      for (int again = 0; again < 500; ++again) {
        auto error = caught([&] {
          if (index % 2 == 0) throw_first(again);
          throw_second(again);
        });
        if (again % 16 == 0) kept.push_back(error);
        if (!otp::throw_stack(error).has_value()) ++wrong;
      }
      const char* name = index % 2 == 0 ? "throw_first" : "throw_second";
      for (const auto& error : kept) {
        if (stack_of(error).find(name) == std::string::npos) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
