#include "otp/io/internal/child_pump.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>

#include "otp/io/internal/asio_context.h"

namespace otp::io::internal {

using otp::internal::self_process;

namespace {

constexpr size_t kStepBytes = 256 << 10;  // moved at once, so that the others get their turn
constexpr size_t kFinishBytes = 4 << 20;  // taken after the end at most
using Pipe = boost::asio::posix::stream_descriptor;

/// Why reading or writing stopped.
enum class Stop { waits, closed, budget };

Stop read_pipe(int fd, Captured& into, size_t bytes_max, size_t budget) {
  char buffer[16 << 10];
  for (size_t taken = 0; taken < budget;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Stop::waits;
    if (got <= 0) return Stop::closed;
    const auto size = static_cast<size_t>(got);
    const size_t room = bytes_max - std::min(bytes_max, into.bytes.size());
    into.bytes.append(buffer, std::min(room, size));
    into.total += size;
    taken += size;
  }
  return Stop::budget;
}

void capture(Captured& into, const std::string& text, size_t bytes_max) {
  into.bytes = text.substr(0, bytes_max);
  into.total = text.size();
}

}  // namespace

struct ChildPump::Pipes {
  explicit Pipes(boost::asio::io_context& context, ChildStreams& streams)
      : input(context, streams.input.release()),
        output(context, streams.output.release()),
        error(context, streams.error.release()) {}
  Pipe input;
  Pipe output;
  Pipe error;
};

namespace {

void wait_for(Pipe& pipe, Pipe::wait_type how, uint64_t id, ChildNews::What what) {
  const ProcessAddress owner{&self_process().system(), self_process().id()};
  pipe.async_wait(how, [owner, id, what](const boost::system::error_code& error) {
    if (!error) send_from_anywhere(owner, ChildNews{.id = id, .what = what});
  });
}

void close(Pipe& pipe) {
  boost::system::error_code ignored;  // closing tells nothing that matters after the end
  pipe.close(ignored);
}

}  // namespace

ChildPump::ChildPump(Server<ChildServer> server, std::shared_ptr<ChildBirth> birth,
                     ChildOptions options)
    : server_(std::move(server)),
      birth_(std::move(birth)),
      options_(std::move(options)),
      monitor_(otp::monitor(server_.pid())) {
  if (birth_->scripted) return;
  pipes_ = std::make_unique<Pipes>(this_asio_poller()->context(), birth_->streams);
  write_input();
  read_output();
  read_error();
}

ChildPump::~ChildPump() {
  if (!ended_) signal_child(server_, birth_->id, SIGKILL);
}

void ChildPump::write_input() {
  if (!pipes_->input.is_open()) return;
  size_t budget = kStepBytes;
  while (budget > 0 && written_ < options_.input.size()) {
    const size_t size = std::min(options_.input.size() - written_, budget);
    const ssize_t sent =
        ::write(pipes_->input.native_handle(), options_.input.data() + written_, size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) written_ = options_.input.size();  // it wants no more
    if (sent <= 0) break;
    written_ += static_cast<size_t>(sent);
    budget -= static_cast<size_t>(sent);
  }
  if (written_ >= options_.input.size()) {
    options_.input = {};
    return close(pipes_->input);
  }
  wait_for(pipes_->input, Pipe::wait_write, birth_->id, ChildNews::What::input);
}

void ChildPump::read_output() {
  if (!pipes_->output.is_open()) return;
  const Stop stop = read_pipe(pipes_->output.native_handle(), outcome_.output,
                              options_.output_bytes_max, kStepBytes);
  if (stop == Stop::closed) return close(pipes_->output);
  wait_for(pipes_->output, Pipe::wait_read, birth_->id, ChildNews::What::output);
}

void ChildPump::read_error() {
  if (!pipes_->error.is_open()) return;
  const Stop stop = read_pipe(pipes_->error.native_handle(), outcome_.error,
                              options_.error_bytes_max, kStepBytes);
  if (stop == Stop::closed) return close(pipes_->error);
  wait_for(pipes_->error, Pipe::wait_read, birth_->id, ChildNews::What::error);
}

bool ChildPump::take(const ChildNews& news) {
  if (news.what == ChildNews::What::ended) {
    outcome_.exit = news.exit;
    finish();
    return true;
  }
  if (pipes_ == nullptr) return false;
  if (news.what == ChildNews::What::input) write_input();
  if (news.what == ChildNews::What::output) read_output();
  if (news.what == ChildNews::What::error) read_error();
  return false;
}

void ChildPump::lose() {
  outcome_.exit = {.how = ChildExit::How::lost};
  finish();
}

// What is in the pipes by now belongs to it; others may hold them open, nobody waits for them.
void ChildPump::finish() {
  ended_ = true;
  otp::demonitor(monitor_, true);
  if (birth_->scripted) {
    const ScriptedChild& child = *birth_->scripted;
    const std::string output = child.output + (child.echoes_input ? options_.input : "");
    capture(outcome_.output, output, options_.output_bytes_max);
    capture(outcome_.error, child.error, options_.error_bytes_max);
    return;
  }
  if (pipes_->output.is_open()) {
    read_pipe(pipes_->output.native_handle(), outcome_.output, options_.output_bytes_max,
              kFinishBytes);
  }
  if (pipes_->error.is_open()) {
    read_pipe(pipes_->error.native_handle(), outcome_.error, options_.error_bytes_max,
              kFinishBytes);
  }
  pipes_.reset();
}

ChildOutcome ChildPump::outcome() { return std::move(outcome_); }

}  // namespace otp::io::internal
