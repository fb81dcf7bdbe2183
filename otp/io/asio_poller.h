#pragma once

#include <cstdint>

#include "otp/runtime/system.h"

namespace boost::asio {
class io_context;
}

/// Boost.Asio under a System: each core waits in an io_context of its own.
///
///     otp::System system(otp::io::system_options());
///     system.run([]() -> otp::Async<void> {
///       boost::asio::steady_timer timer(otp::io::this_context(), 10ms);
///       co_await timer.async_wait(otp::io::use_process);
///     });
///
/// The contexts belong to the System: its threads run them, between slices and when there is
/// nothing else to do. Any thread may use them (their concurrency hint is the safe one), and a
/// process may run on another core than the context of its socket. A completion handler of your own
/// runs on a core's thread: it must be short and must not throw; better await with use_process.
namespace otp::io {

/// The same options with a poller on Boost.Asio for every core.
SystemOptions system_options(SystemOptions options = {});

/// The context of core `index`. REQUIRES: the System was made with system_options().
boost::asio::io_context& context_of(System& system, uint32_t index);

/// The context of the core that runs the calling process.
/// REQUIRES: called in a process of such a System; aborts the node otherwise.
boost::asio::io_context& this_context();

}  // namespace otp::io
