#!/bin/sh
# A compiler that would build the library wrongly is refused, and the reason is said first.
set -eu

refuses() { # EXPECTED COMPILER...
  expected=$1
  shift
  if said=$("$@" -I. -fsyntax-only -x c++ otp/base/compiler.h 2>&1); then
    echo "FAILED: $* takes it" && exit 1
  fi
  case "$(echo "$said" | grep -m 1 'error:')" in
    *"$expected"*) ;;
    *) echo "FAILED: expected '$expected', got: $said" && exit 1 ;;
  esac
}

refuses "C++20 is needed" clang++-19 -std=c++17
if g++ --version | grep -q ' 12\.'; then
  refuses "g++ before 13 miscompiles coroutines" g++ -std=c++20
fi
clang++-19 -std=c++20 -I. -fsyntax-only -Wno-pragma-once-outside-header -x c++ otp/base/compiler.h
