#pragma once

namespace otp::release {

/// Makes the program fit to be process 1 of a container.
///
/// Process 1 inherits every orphan of its container and must reap them, but a node that reaps
/// strangers could take the exit status of a child that it waits for itself. So process 1 forks: it
/// stays as a small parent, and the node runs as its child, with children of its own as anywhere
/// else. The parent reaps whatever ends, hands every signal on to the node, and ends with the
/// node's status (128 + n after signal n); then the kernel ends what is left in the container.
///
/// Call before any thread starts, and prepare_signals() next: until then signals stay blocked, so
/// none is lost. Returns in the node only; in any process but number 1 it does nothing. When there
/// can be no child the node runs as process 1 itself.
void become_init_if_process_1();

}  // namespace otp::release
