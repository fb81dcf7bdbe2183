#pragma once

// A thin layer over SQLite's C interface for database.cc alone: statements that clean up after
// themselves, and errors as one exception type that never leaves the Database.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apps/jobs/store_error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace jobs {

class Statement;

/// One connection. Throws StoreError.
class Sqlite {
 public:
  enum class Access { write, read };
  /// Opens `path`; one that writes creates it. Takes: busy_wait: how long one call waits for
  /// somebody else's lock.
  Sqlite(const std::string& path, std::chrono::milliseconds busy_wait,
         Access access = Access::write);

  void run(const char* sql);  ///< statements without parameters and rows
  int64_t number(const char* sql);
  std::string text(const char* sql);
  bool read_only() const;
  int64_t last_row() const;
  void rollback() noexcept;  ///< ends the open transaction, if any

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* db) const;
  };
  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
};

/// A prepared statement. Bind its parameters in order, then step through its rows.
///
///     Statement& find = ...;
///     find.bind(id);
///     while (find.step()) use(find.integer(0));
class Statement {
 public:
  Statement(Sqlite& db, const char* sql);

  Statement& bind(int64_t value);
  Statement& bind(std::optional<int64_t> value);
  Statement& bind_text(std::string_view value);
  Statement& bind_bytes(std::string_view value);
  /// True: a row is there. False: done, and ready to be bound again.
  bool step();
  void run() {
    while (step()) {}
  }
  void reset() noexcept;

  int64_t integer(int column) const;
  std::optional<int64_t> integer_or_null(int column) const;
  std::string bytes(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void check_bound(int code);

  Sqlite& db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_ = 1;
};

}  // namespace jobs
