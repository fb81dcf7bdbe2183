#include "otp/release/instance_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "otp/release/testing/temporary_folder.h"

namespace otp::release {
namespace {

using testing::read_text;
using testing::TemporaryFolder;
using testing::write_file;

TEST_CASE("the second taker of a lock is told who holds it", "[release][lock]") {
  TemporaryFolder folder;
  LockAttempt first = InstanceLock::acquire(folder / "a.lock");
  REQUIRE(first.lock.held());
  CHECK(first.lock.write_note("pid 4711") == "");

  LockAttempt second = InstanceLock::acquire(folder / "a.lock");
  CHECK_FALSE(second.lock.held());
  CHECK(second.error == "");
  REQUIRE(second.holder);
  CHECK(second.holder->note == "pid 4711");
}

TEST_CASE("a lock that was let go can be taken, and its shorter note is whole", "[release][lock]") {
  TemporaryFolder folder;
  {
    LockAttempt first = InstanceLock::acquire(folder / "a.lock");
    CHECK(first.lock.write_note("pid 1234567") == "");
  }
  LockAttempt second = InstanceLock::acquire(folder / "a.lock");
  REQUIRE(second.lock.held());
  CHECK(second.lock.write_note("pid 2") == "");
  CHECK(query_lock(folder / "a.lock").holder.note == "pid 2");
}

TEST_CASE("looking at a lock does not take it", "[release][lock]") {
  TemporaryFolder folder;
  CHECK(query_lock(folder / "a.lock").kind == LockState::Kind::free);
  CHECK_FALSE(std::filesystem::exists(folder / "a.lock"));
  write_file(folder / "a.lock", "pid 1\n");
  CHECK(query_lock(folder / "a.lock").kind == LockState::Kind::free);
  LockAttempt attempt = InstanceLock::acquire(folder / "a.lock");
  CHECK(query_lock(folder / "a.lock").kind == LockState::Kind::held);
  CHECK(query_lock(folder / "a.lock").kind == LockState::Kind::held);
  CHECK(attempt.lock.held());
}

TEST_CASE("closing another descriptor of the lock file does not drop the lock", "[release][lock]") {
  TemporaryFolder folder;
  LockAttempt attempt = InstanceLock::acquire(folder / "a.lock");
  close(open((folder / "a.lock").c_str(), O_RDWR | O_CLOEXEC));
  CHECK(query_lock(folder / "a.lock").kind == LockState::Kind::held);
  CHECK(InstanceLock::acquire(folder / "a.lock").holder);
}

TEST_CASE("R-016 a killed holder leaves no lock behind", "[release][lock]") {
  TemporaryFolder folder;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    LockAttempt attempt = InstanceLock::acquire(folder / "a.lock");
    bool noted = attempt.lock.held() && attempt.lock.write_note("pid 1").empty();
    [[maybe_unused]] ssize_t written = write(ends[1], noted ? "y" : "n", 1);
    while (true) pause();
  }
  char answer = 0;
  REQUIRE(read(ends[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  CHECK(query_lock(folder / "a.lock").kind == LockState::Kind::held);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(query_lock(folder / "a.lock").kind == LockState::Kind::free);
  CHECK(InstanceLock::acquire(folder / "a.lock").lock.held());
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a lock file that is no plain file is refused with its path", "[release][lock]") {
  TemporaryFolder folder;
  SECTION("a link") {
    write_file(folder / "other", "precious");
    std::filesystem::create_symlink(folder / "other", folder / "a.lock");
  }
  SECTION("a folder") { std::filesystem::create_directory(folder / "a.lock"); }
  SECTION("a fifo") { REQUIRE(mkfifo((folder / "a.lock").c_str(), 0600) == 0); }
  LockAttempt attempt = InstanceLock::acquire(folder / "a.lock");
  CHECK_FALSE(attempt.lock.held());
  CHECK_FALSE(attempt.holder);
  CHECK(attempt.error.find(folder / "a.lock") != std::string::npos);
}

TEST_CASE("a lock file that was replaced is locked in its new shape", "[release][lock]") {
  TemporaryFolder folder;
  LockAttempt old = InstanceLock::acquire(folder / "a.lock");
  std::filesystem::remove(folder / "a.lock");
  LockAttempt fresh = InstanceLock::acquire(folder / "a.lock");
  CHECK(fresh.lock.held());
  CHECK(query_lock(folder / "a.lock").kind == LockState::Kind::held);
}

TEST_CASE("a note with odd bytes is shown harmlessly", "[release][lock]") {
  TemporaryFolder folder;
  LockAttempt attempt = InstanceLock::acquire(folder / "a.lock");
  write_file(folder / "a.lock", "pid \x1b[31m\xff\nmore");
  CHECK(query_lock(folder / "a.lock").holder.note == "pid ?[31m?");
}

TEST_CASE("R-016 a pid file that is a link is replaced, not followed", "[release][lock]") {
  TemporaryFolder folder;
  write_file(folder / "other", "precious");
  std::filesystem::create_symlink(folder / "other", folder / "a.pid");
  CHECK(write_pid_file(folder / "a.pid", 42) == "");
  CHECK(read_text(folder / "other") == "precious");
  CHECK(read_text(folder / "a.pid") == "42\n");
  CHECK_FALSE(std::filesystem::is_symlink(folder / "a.pid"));
}

TEST_CASE("R-016 a folder in the pid file's place is reported with its path", "[release][lock]") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a.pid");
  CHECK(write_pid_file(folder / "a.pid", 42).find(folder / "a.pid") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "a.pid.new"));
}

}  // namespace
}  // namespace otp::release
