#include "apps/jobs/sqlite.h"

#include <sqlite3.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace jobs {
namespace {

StoreError::Kind kind_of(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return StoreError::Kind::busy;
    case SQLITE_FULL: return StoreError::Kind::full;
    case SQLITE_READONLY:
    case SQLITE_PERM: return StoreError::Kind::read_only;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return StoreError::Kind::corrupt;
    default: return StoreError::Kind::other;
  }
}

StoreError::Kind kind_of_system(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS: return StoreError::Kind::read_only;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return StoreError::Kind::full;
    default: return StoreError::Kind::other;
  }
}

/// Takes: errno as the failed call left it: SQLite itself keeps it for some failures only.
StoreError error_of(const std::string& path, sqlite3* db, int code) {
  const int left = errno;
  StoreError error{.kind = kind_of(code), .text = path + ": " + ::sqlite3_errmsg(db)};
  if (error.kind != StoreError::Kind::other) return error;
  // SQLite's own words stop at "disk I/O error" or "unable to open database file".
  const int system = ::sqlite3_system_errno(db) != 0 ? ::sqlite3_system_errno(db) : left;
  const char* words = ::strerrordesc_np(system);
  error.kind = kind_of_system(system);
  if (system != 0 && words != nullptr) error.text += " (" + std::string(words) + ")";
  return error;
}

}  // namespace

void Sqlite::Close::operator()(sqlite3* db) const { ::sqlite3_close_v2(db); }

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  ::sqlite3_finalize(statement);
}

Sqlite::Sqlite(const std::string& path, std::chrono::milliseconds busy_wait, Access access)
    : path_(path) {
  sqlite3* db = nullptr;
  const int writes = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int flags = (access == Access::write ? writes : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
  errno = 0;
  const int code = ::sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  db_.reset(db);  // there even when it failed, to hold the error
  if (code != SQLITE_OK) throw error_of(path_, db, code);
  ::sqlite3_busy_timeout(db, static_cast<int>(busy_wait.count()));
  run("PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
}

void Sqlite::run(const char* sql) {
  errno = 0;
  const int code = ::sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw error_of(path_, db_.get(), code);
}

int64_t Sqlite::number(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Sqlite::text(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.bytes(0) : std::string();
}

bool Sqlite::read_only() const { return ::sqlite3_db_readonly(db_.get(), "main") != 0; }

int64_t Sqlite::last_row() const { return ::sqlite3_last_insert_rowid(db_.get()); }

void Sqlite::rollback() noexcept {
  // Some errors have rolled back already; then there is nothing to do.
  if (::sqlite3_get_autocommit(db_.get()) == 0) {
    ::sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

Statement::Statement(Sqlite& db, const char* sql) : db_(db) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      ::sqlite3_prepare_v3(db_.db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) throw error_of(db_.path_, db_.db_.get(), code);
}

Statement& Statement::bind(int64_t value) {
  ::sqlite3_bind_int64(statement_.get(), next_++, value);
  return *this;
}

Statement& Statement::bind(std::optional<int64_t> value) {
  if (value) return bind(*value);
  ::sqlite3_bind_null(statement_.get(), next_++);
  return *this;
}

Statement& Statement::bind_text(std::string_view value) {
  const int code = ::sqlite3_bind_text64(statement_.get(), next_++, value.data(), value.size(),
                                         SQLITE_TRANSIENT, SQLITE_UTF8);
  check_bound(code);
  return *this;
}

Statement& Statement::bind_bytes(std::string_view value) {
  const char* data = value.empty() ? "" : value.data();  // a null pointer would be NULL, not empty
  const int code =
      ::sqlite3_bind_blob64(statement_.get(), next_++, data, value.size(), SQLITE_TRANSIENT);
  check_bound(code);
  return *this;
}

void Statement::check_bound(int code) {
  if (code == SQLITE_OK) return;
  const StoreError error = error_of(db_.path_, db_.db_.get(), code);
  reset();
  throw error;
}

bool Statement::step() {
  errno = 0;
  const int code = ::sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    const StoreError error = error_of(db_.path_, db_.db_.get(), code);
    reset();
    throw error;
  }
  reset();
  return false;
}

void Statement::reset() noexcept {
  ::sqlite3_reset(statement_.get());
  ::sqlite3_clear_bindings(statement_.get());
  next_ = 1;
}

int64_t Statement::integer(int column) const {
  return ::sqlite3_column_int64(statement_.get(), column);
}

std::optional<int64_t> Statement::integer_or_null(int column) const {
  if (::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return integer(column);
}

std::string Statement::bytes(int column) const {
  const auto data = static_cast<const char*>(::sqlite3_column_blob(statement_.get(), column));
  const auto size = static_cast<size_t>(::sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? std::string() : std::string(data, size);
}

}  // namespace jobs
