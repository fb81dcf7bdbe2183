"""Each rule finds what it is for, and leaves alone what only looks like it."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import rules  # noqa: E402

_LONG_BODY = "  step();\n" * 70

# rule: [(path, text, the lines it must find)]
_CASES = {
    rules.line_length: [
        ("otp/a.cc", "x" * 100 + "\n" + "y" * 101 + "\n", [2]),
        ("docs/a.md", "x" * 200 + "\n", []),
    ],
    rules.plain_text: [
        ("otp/a.cc", "a \nb\tc\nd\r\n", [3, 1, 2]),
        ("otp/a.cc", "a", [1]),
        ("otp/a.cc", "a\n\n", [3]),
        ("otp/a.cc", "a\n", []),
    ],
    rules.function_length: [
        ("otp/a.cc", "namespace a {\nvoid f() {\n" + _LONG_BODY + "}\n}\n", [2]),
        ("otp/a.cc", "class A {\n  A() : b_{1} {\n" + _LONG_BODY + "}\n};\n", [2]),
        ("otp/a.cc", "void f() {\n" + "  // }\n" * 68 + "}\n", []),
        ("otp/a.cc", "struct A {\n" + "  int f() { return 1; }\n" * 90 + "};\n", []),
        ("otp/a.cc", "const int kTable[] = {\n" + "  1,\n" * 90 + "};\n", []),
        ("otp/a.cc", "struct A {\n" + "  int f() { return '{'; }\n" * 90 + "};\n", []),
    ],
    rules.file_length: [
        ("otp/a.cc", "a\n" * 601, [1]),
        ("otp/a.cc", "// long because of a table.\n" + "a\n" * 601, []),
    ],
    rules.readme_length: [
        ("otp/base/README.md", "a\n" * 41, [1]),
        ("README.md", "a\n" * 100, []),
    ],
    rules.header_guard: [
        ("otp/a.h", "#pragma once\n", []),
        ("otp/a.h", "#ifndef OTP_A_H_\n#define OTP_A_H_\n#endif\n", [1, 1]),
    ],
    rules.markers: [("otp/a.cc", "// TODO(me): later\n// fixed the FIXME\n// todo list\n", [1, 2])],
    rules.machine_paths: [
        ("otp/a.cc", "// /home/me/x\n// $HOME/work/x\n// otp/work/a\n", [1]),
    ],
    rules.includes: [
        ("otp/runtime/a.cc", "#include <boost/asio.hpp>\n#include <yaml-cpp/yaml.h>\n", [1, 2]),
        ("otp/io/a.h", "#include <boost/asio.hpp>\n", []),
        ("otp/config/a.cc", "#include <yaml-cpp/yaml.h>\n", []),
        ("otp/base/a.h", '#include "absl/strings/str_cat.h"\n#include "../b.h"\n', [1, 2]),
        ("otp/base/a.cc", '#include "absl/strings/str_cat.h"\n', []),
        ("otp/base/a_test.cc", "#include <catch2/catch.hpp>\n", []),
        ("otp/io/a.cc", '#include "otp/testing/simulator.h"\n', [1]),
    ],
    rules.layers: [
        ("otp/base/a.h", '#include "otp/base/b.h"\n#include "otp/runtime/c.h"\n', [2]),
        ("otp/behaviour/a.h", '#include "otp/runtime/c.h"\n#include "otp/io/d.h"\n', [2]),
        ("otp/io/a.h", '#include "otp/runtime/c.h"\n', []),
    ],
    rules.banned_calls: [
        ("otp/a.cc", "int x = rand();\nstd::atomic_thread_fence(o);\n", [2, 1]),
        ("otp/a.cc", 'system("ls");\nstd::system("ls");\nsystem.call(x);\n', [1, 2]),
        ("otp/a.cc", '// rand()\nconst char* s = "rand()";\nsnprintf(b, n, "%n", &x);\n', [3]),
        ("otp/a.cc", "int operand(int);\nrng.rand();\nlocaltime_r(&t, &tm);\n", []),
        ("otp/a.h", "using namespace std;\nvoid f() {\n  using namespace b;\n}\n", [1]),
    ],
    rules.sleeps: [
        ("otp/a_test.cc", "std::this_thread::sleep_for(1s);\nusleep(3);\n", [1, 2]),
        ("otp/a_test.cc", "// sleep(1)\nhost.sleep(1s);\n", []),
        ("otp/a.cc", "::nanosleep(&t, nullptr);\n", []),
    ],
    rules.awaits: [
        ("apps/a.cc", "co_await call(c, Note{.text = s});\nco_await call(c, {.max = 5});\n", [1]),
        ("apps/a.cc", "co_await blocking([x] { return x; });\nco_await call(c, Get{});\n", [1]),
        ("apps/a.cc", "co_await f(table[i]);\nNote note{.text = s};\n", []),
        ("otp/a.h", "Awaiter operator co_await() { return Awaiter{*this}; }\n", []),
    ],
    rules.coroutine_lambdas: [
        ("otp/a.cc", "auto f = [x](int) -> otp::Async<int> { co_return x; };\n", [1]),
        ("otp/a.cc", "auto f = [](int x) -> otp::Async<int> { co_return x; };\n", []),
        ("otp/a.cc", "auto [a, b] = co_await f();\nauto [c, d] = f();\n", [1]),
    ],
    rules.callback_names: [
        ("apps/a.cc", "void handle_cal(A);\nvoid handle_inf(B);\nvoid terminat(R);\n", [1, 2, 3]),
        ("apps/a.cc", "void handle_contineu(A);\nvoid fromat_status();\n", [1, 2]),
        ("apps/a.cc", "void handle_call(A);\nvoid handle_cast(B);\nstd::terminate();\n", []),
        ("apps/a.cc", "bool terminated();\nvoid handle_exit(E);\n", []),
    ],
    rules.test_names: [
        ("otp/a_test.cc", 'TEST_CASE("Test1", "[a]") {}\nTEST_CASE("it works") {}\n', [1, 2]),
        ("otp/a_test.cc", 'TEST_CASE("a long name "\n          "goes on", "[a]") {}\n', []),
    ],
}


class RulesTest(unittest.TestCase):
    def test_each_rule_has_a_case(self):
        self.assertEqual(set(_CASES), set(rules.RULES))

    def test_cases(self):
        for rule, cases in _CASES.items():
            for path, text, expected in cases:
                with self.subTest(rule=rule.__name__, text=text[:80]):
                    found = [line for line, _ in rule(rules.File(path, text))]
                    self.assertEqual(found, expected)

    def test_dead_files(self):
        files = [
            rules.File("otp/base/BUILD", 'srcs = ["a.cc", "internal/c.h"]\n'),
            rules.File("otp/base/a.cc", ""),
            rules.File("otp/base/b.cc", ""),
            rules.File("otp/base/internal/c.h", ""),
        ]
        self.assertEqual([path for path, _, _ in rules.dead_files(files)], ["otp/base/b.cc"])

    def test_readmes(self):
        files = [
            rules.File("otp/base/a.cc", ""),
            rules.File("otp/io/a.cc", ""),
            rules.File("otp/io/README.md", ""),
        ]
        found = [path for path, _, _ in rules.readmes(files)]
        self.assertEqual(found, ["otp/base/README.md"])

    def test_own_header_first(self):
        files = [
            rules.File("otp/base/a.h", ""),
            rules.File("otp/base/a.cc", '// A.\n#include "otp/base/a.h"\n#include <new>\n'),
            rules.File("otp/base/b.h", ""),
            rules.File("otp/base/b.cc", '#include <new>\n#include "otp/base/b.h"\n'),
            rules.File("otp/base/c.h", ""),
            rules.File("otp/base/c.cc", "int c;\n"),
            rules.File("otp/base/d.cc", "#include <new>\n"),
        ]
        found = [path for path, _, _ in rules.own_header_first(files)]
        self.assertEqual(found, ["otp/base/b.cc", "otp/base/c.cc"])


if __name__ == "__main__":
    unittest.main()
