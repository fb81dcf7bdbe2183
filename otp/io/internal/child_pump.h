#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "otp/io/child_server.h"
#include "otp/io/internal/child_news.h"

namespace otp::io::internal {

/// Moves bytes between a program's pipes and memory as far as it goes without waiting, and asks to
/// be told, by ChildNews, when it goes on. Completion handlers know the process's address only, so
/// it may be destroyed at any time.
class ChildPump {
 public:
  ChildPump(Server<ChildServer> server, std::shared_ptr<ChildBirth> birth, ChildOptions options);
  ~ChildPump();
  ChildPump(const ChildPump&) = delete;
  ChildPump& operator=(const ChildPump&) = delete;

  const Server<ChildServer>& server() const { return server_; }
  const ChildBirth& birth() const { return *birth_; }
  Reference monitor() const { return monitor_; }

  /// Takes one piece of news. True: it has ended.
  bool take(const ChildNews& news);
  /// Its server is gone, and it with it.
  void lose();
  ChildOutcome outcome();

 private:
  struct Pipes;
  void write_input();
  void read_output();
  void read_error();
  void finish();

  Server<ChildServer> server_;
  std::shared_ptr<ChildBirth> birth_;
  ChildOptions options_;
  Reference monitor_;
  std::unique_ptr<Pipes> pipes_;
  ChildOutcome outcome_;
  size_t written_ = 0;
  bool ended_ = false;
};

}  // namespace otp::io::internal
