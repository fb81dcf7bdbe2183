#include "otp/base/term.h"

#include <catch2/catch.hpp>

#include "otp/base/exit_reason.h"
#include "otp/base/result.h"

using otp::ExitReason;
using otp::Term;

TEST_CASE("a term is printed in Erlang's notation", "[term]") {
  Term why = Term::tuple({Term::atom("failed_to_start_child"), Term("no \"luck\"\n"),
                          Term::list({Term(1), Term(2.5)}), Term()});
  CHECK(why.to_string() == R"({failed_to_start_child,"no \"luck\"\n",[1,2.5],undefined})");
  CHECK(Term(otp::Pid{0, (7ull << 32) | 3}).to_string() == "<0.3.7>");
}

TEST_CASE("terms are equal when their contents are", "[term]") {
  CHECK(Term::atom("normal") == Term::literal("normal"));
  CHECK_FALSE(Term::atom("normal") == Term("normal"));
  CHECK(Term::tuple({Term(1), Term("a")}) == Term::tuple({Term(1), Term("a")}));
  CHECK_FALSE(Term::tuple({Term(1)}) == Term::list({Term(1)}));
}

TEST_CASE("a copied or moved term keeps its contents", "[term]") {
  Term original = Term::tuple({Term("text"), Term::atom("x")});
  Term copy = original;
  Term moved = std::move(original);
  original = copy;
  CHECK(moved == original);
  moved = Term(4);
  CHECK(copy.to_string() == "{\"text\",x}");
}

TEST_CASE("exit reasons are quiet or abnormal as in OTP", "[exit_reason]") {
  CHECK(ExitReason::normal().is_normal());
  CHECK_FALSE(ExitReason::shutdown(Term("upgrade")).is_abnormal());
  CHECK_FALSE(ExitReason::shutdown().is_abnormal());
  CHECK(ExitReason::killed().is_abnormal());
  CHECK(ExitReason::exception("std::runtime_error", "boom", Term()).to_string() ==
        "{{std::runtime_error,\"boom\"},undefined}");
}

TEST_CASE("a result is a value, an error or ignored", "[result]") {
  otp::Result<int> value(4), error(ExitReason::timeout()), ignored(otp::Ignored{});
  CHECK(value.ok());
  CHECK(value.value() == 4);
  CHECK(error.error().is("timeout"));
  CHECK(ignored.ignored());
  CHECK_THROWS_AS(std::move(error).or_exit(), otp::Exit);
}
