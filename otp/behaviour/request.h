#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <utility>

#include "otp/async/async.h"
#include "otp/base/result.h"
#include "otp/behaviour/gen_server.h"
#include "otp/runtime/runtime.h"

/// Requests whose response is waited for later: a call in two halves.
///
///     auto a = otp::send_request(north, Price{.sku = 1});
///     auto b = otp::send_request(south, Price{.sku = 1});
///     otp::Result<int> first = co_await otp::receive_response(a);
///     otp::Result<int> second = co_await otp::receive_response(b, 2s);
///
/// Every failure is a response: {Reason,Pid} when the server ends first, {noproc,Pid} when there
/// is none. A request is never raised as an exception. OTP: gen_server:send_request/2.
namespace otp {

/// A request under way; its response is an R. Plain data, of the process that sent it.
template <class R>
struct RequestId {
  Pid server{};
  Reference reference{};
  friend bool operator==(const RequestId&, const RequestId&) = default;
};

namespace internal {

/// Sends `request` and has its response put into the mailbox.
Reference post_request(Pid server, Letter* request);
/// Gives the response up: what has come of it is dropped.
void abandon_request(Pid server, Reference reference);
ExitReason failed_request(const Letter& response, Pid server);

/// Waits for the response to one request, or to one of several.
class ResponseReceive final : public ReceiveBase {
 public:
  ResponseReceive(const Reference* first, size_t count, Timeout timeout)
      : ReceiveBase(timeout), first_(first), count_(count) {}
  bool await_ready() { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  Letter* await_resume() {
    finish();
    return letter_;
  }

 private:
  bool accepts(Letter& letter) override;
  const Reference* const first_;
  const size_t count_;
};

/// The value of a response, which is consumed.
template <class R>
Result<R> take_response(Letter* response, Pid server) {
  LibraryScope scope(env());
  Process& process = self_process();
  if (response->flags & kFailed) {
    ExitReason reason = failed_request(*response, server);
    process.consume(response);
    return reason;
  }
  if constexpr (std::is_void_v<R>) {
    process.consume(response);
    return {};
  } else {
    return take_reply_value<R>(process, response);
  }
}

}  // namespace internal

/// Sends a request and does not wait; the response comes into this process's mailbox.
template <class S, class M>
RequestId<typename M::Reply> send_request(const Server<S>& server, M message) {
  using namespace internal;
  ChecksOf<S>::template call<M>();
  LibraryScope scope(env());
  const Pid target = server.pid();
  Letter* letter = make_call_letter<M>(call_operation<S, M>, std::move(message));
  return {target, post_request(target, letter)};
}
template <class S, class M>
RequestId<typename M::Reply> send_request(const Name<S>& name, M message) {
  return send_request(Server<S>(name), std::move(message));
}

/// Waits for the response; nothing yet when `timeout` is over: it may be waited for again.
/// OTP: gen_server:wait_response/2.
template <class R>
Async<std::optional<Result<R>>> wait_response(RequestId<R> request, Timeout timeout = infinity) {
  internal::Letter* response = co_await internal::ResponseReceive(&request.reference, 1, timeout);
  if (response == nullptr) co_return std::nullopt;
  co_return internal::take_response<R>(response, request.server);
}

/// Waits for the response; the error `timeout` gives the request up: what comes of it later is
/// dropped. OTP: gen_server:receive_response/2.
template <class R>
Async<Result<R>> receive_response(RequestId<R> request, Timeout timeout = infinity) {
  internal::Letter* response = co_await internal::ResponseReceive(&request.reference, 1, timeout);
  if (response != nullptr) co_return internal::take_response<R>(response, request.server);
  internal::abandon_request(request.server, request.reference);
  co_return ExitReason::timeout();
}

/// The value in a message that handle_info(otp::Response) got, if it answers `request`.
/// OTP: gen_server:check_response/2.
template <class R>
std::optional<Result<R>> check_response(const Response& response, const RequestId<R>& request) {
  internal::Letter* letter = response.letter;
  if (letter == nullptr || letter->reference != request.reference.id) return std::nullopt;
  if (letter->flags & internal::kFailed) {
    return Result<R>(internal::failed_request(*letter, request.server));
  }
  if constexpr (std::is_void_v<R>) {
    return Result<R>();
  } else {
    return Result<R>(std::move(letter->as<R>()));
  }
}

// ---- Several at once

/// Requests under way, each with a label, whose responses are taken in the order in which they
/// come. OTP: the request id collections of gen_server:reqids_new/0 and its like.
template <class R, class Label>
class RequestIds {
 public:
  struct Answer {
    Result<R> result;
    Label label;
    RequestId<R> request;
  };

  /// False, and nothing changes: that request is here already.
  bool add(RequestId<R> request, Label label) {
    for (const Entry& each : entries_) {
      if (each.request == request) return false;
    }
    entries_.push_back({request, std::move(label)});
    references_.push_back(request.reference);
    return true;
  }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  /// The next response of any of them, which is taken out of the collection. Nothing: `no_request`
  /// is the error of an empty collection, `timeout` that of one in which none came in time.
  Async<Result<Answer>> wait(Timeout timeout = infinity) {
    if (empty()) co_return ExitReason::atom("no_request");
    internal::Letter* response =
        co_await internal::ResponseReceive(references_.data(), references_.size(), timeout);
    if (response == nullptr) co_return ExitReason::timeout();
    size_t at = 0;
    while (references_[at].id != response->reference) ++at;
    Entry entry = std::move(entries_[at]);
    entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(at));
    references_.erase(references_.begin() + static_cast<ptrdiff_t>(at));
    co_return Answer{internal::take_response<R>(response, entry.request.server),
                     std::move(entry.label), entry.request};
  }

 private:
  struct Entry {
    RequestId<R> request;
    Label label;
  };
  std::vector<Entry> entries_;
  std::vector<Reference> references_;  // of entries_, in the same order
};

}  // namespace otp
