#pragma once

namespace otp::io {

/// The guardian: a small operating-system process that starts a node's commands and outlives the
/// node by as long as it takes to kill them.
///
/// It is the node's own program, started again with a private first argument (`start_guardian` in
/// child_program.h does so); a main must therefore begin with
///
///     if (otp::io::is_guardian(argc, argv)) return otp::io::guardian_main();
///
/// Why a process, and not a thread of the node:
///  - `kill -9` of the node, an abort or the out-of-memory killer leave nobody inside it to clean
///    up. Here the kernel closes the node's end of a socket, and the guardian kills every command
///    at once. (PDEATHSIG cannot do that: posix_spawn has no way to set it, it reaches the command
///    but not its children, and it fires when the *thread* that started the command ends.)
///  - As a child subreaper it also inherits what commands leave behind (`daemonize`,
///    `sh -c '... &'`): no zombies, also when the node is process 1, and nothing survives. A node
///    collecting "any child" would steal others' statuses.
///  - It has few descriptors, one thread and an empty signal mask to give: what commands inherit
///    is decided here and not by whatever the node happens to have open, blocked or ignored at
///    that moment.
///  - Starting from a small process costs the same whatever the node's size.
/// The price: two more processes in `ps`, and two datagrams a command. No pidfd is needed: only the
/// guardian collects its children, so a pid that it has not collected cannot be another's.
///
/// It is two processes, parent and child: the child serves, its parent, the keeper, waits for its
/// end. Whichever of the two is killed, the other one kills every command; so nothing survives a
/// node that is killed together with either of them.
///
/// What a command gets: its own process group in the guardian's session; descriptors 0, 1, 2 and no
/// other; no blocked and no ignored signal; exactly the environment of the request; umask 022; the
/// requested directory; the limits, nice value and oom_score_adj that the node had when it started
/// its guardian.
///
/// When a command ends, the rest of its group is killed before the end is reported. Descendants
/// that left the group (setsid) are killed once no command runs that may have been their origin,
/// which is when every command that was started before them has ended; so no sibling ever loses a
/// process.
///
/// When the node goes away everything is killed with SIGKILL, descendants included, until nothing
/// is left. The next node may be up before that, so both processes hold the lock that the node gave
/// them until they end, and the next node waits for it (ChildPrograms::Options::lock).
///
/// SIGTERM, SIGINT and SIGHUP are ignored: a service manager that signals the whole group of
/// processes means the node, which ends in order and then closes the socket.

/// True when this program was started to be a guardian.
bool is_guardian(int argc, char** argv);

/// Serves until the node is gone and every command with it. Returns the exit status for main.
int guardian_main();

}  // namespace otp::io
