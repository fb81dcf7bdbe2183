#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "otp/io/child_program.h"
#include "otp/io/descriptor.h"

namespace otp::io {

/// What a command wrote to one of its streams: the first bytes, and how many there were.
struct Captured {
  std::string bytes;
  uint64_t total = 0;

  bool cut() const { return total > bytes.size(); }
};

/// Feeds a command its input and takes its output and error, all at the same time.
///
/// Neither side can wait for the other for ever: input is written only as far as the command reads
/// it, and what it writes is always taken, beyond the cap into nothing. A command that never reads
/// its input, closes its streams early or writes without end is no error here: its exit status
/// alone decides.
///
/// Like ChildPrograms a state machine without waiting: put poll_set() into a poll, hand the results
/// to on_ready(); after the command's end (ChildEnded) call finish() once. Memory: the input and
/// the two caps.
///
/// Threads: one at a time. REQUIRES: SIGPIPE is ignored (ChildPrograms::launch sees to it).
class ChildPipes {
 public:
  struct Options {
    std::string input = {};  ///< written to the command's stdin, which then is closed
    size_t output_bytes_max = 64 << 10;
    size_t error_bytes_max = 16 << 10;
  };
  ChildPipes(ChildStreams streams, Options options);

  /// The descriptors to wait for, with the events wanted; empty once all are closed.
  std::vector<pollfd> poll_set() const;
  /// Takes: ready: entries of poll_set() with their revents.
  void on_ready(const std::vector<pollfd>& ready);

  bool input_open() const { return static_cast<bool>(streams_.input); }
  bool output_open() const { return static_cast<bool>(streams_.output); }
  bool error_open() const { return static_cast<bool>(streams_.error); }
  int input_fd() const { return streams_.input.get(); }
  int output_fd() const { return streams_.output.get(); }
  int error_fd() const { return streams_.error.get(); }
  // One step each, for drivers that wait for the descriptors one by one.
  void write_input();
  void read_output();
  void read_error();

  /// The command has ended: takes what is in its pipes by now and closes them. It does not wait for
  /// whoever else may hold them open.
  void finish();

  const Captured& output() const { return output_; }
  const Captured& error() const { return error_; }

 private:
  enum class Outcome { again, waits, closed };
  static Outcome read_once(int fd, Captured& into, size_t bytes_max);
  static void read_some(Descriptor& from, Captured& into, size_t bytes_max, size_t budget);

  ChildStreams streams_;
  Options options_;
  size_t written_ = 0;
  Captured output_;
  Captured error_;
};

}  // namespace otp::io
