#include "otp/base/throw_stack.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <typeinfo>

// Records: one for each living exception that was thrown through our wrap.
//
// (T1) A record is in the table from before its exception is thrown until its exception object is
//      destroyed: we stand in for the object's destructor, and run the real one from there.
// (T2) An address is in the table at most once, because its object is destroyed before the memory
//      is used again.
// (T3) Of a record in the table only `awaits` changes, from empty to not, under the shard's lock;
//      readers copy what they want under the same.
// An exception whose record could not be allocated is thrown without one.

namespace otp {
namespace {

using Destructor = void (*)(void*);

struct Record {
  void* object;
  Destructor destructor;
  Record* next;
  StackTrace stack;
  AwaitStack awaits;
};

constexpr size_t kShards = 64;
constexpr size_t kSpareRecordsMax = 16;  // per shard

struct alignas(64) Shard {
  constexpr Shard() = default;
  std::mutex mutex;
  Record* records = nullptr;  // guarded by mutex, as the rest
  Record* spare = nullptr;
  size_t spare_count = 0;
};

// Never destroyed (the members are trivial, std::mutex included): exceptions may outlive main.
constinit std::array<Shard, kShards> table;

Shard& shard_of(const void* object) noexcept {
  const auto bits = reinterpret_cast<uintptr_t>(object) >> 4;
  return table[(bits * 0x9e3779b97f4a7c15u) >> 58];
}
static_assert(kShards == size_t{1} << (64 - 58));

Record* allocate_record(Shard& shard) noexcept {
  {
    std::lock_guard lock(shard.mutex);
    if (Record* record = shard.spare; record != nullptr) {
      shard.spare = record->next;
      --shard.spare_count;
      return record;
    }
  }
  return static_cast<Record*>(std::malloc(sizeof(Record)));
}

// The destructor that the exception machinery calls for every object that has a record.
void destroy_recorded(void* object) {
  Shard& shard = shard_of(object);
  Destructor destructor = nullptr;
  Record* surplus = nullptr;
  {
    std::lock_guard lock(shard.mutex);
    Record** link = &shard.records;
    while (*link != nullptr && (*link)->object != object) link = &(*link)->next;
    Record* record = *link;
    if (record != nullptr) {  // always, by T1
      destructor = record->destructor;
      *link = record->next;
      if (shard.spare_count < kSpareRecordsMax) {
        record->next = shard.spare;
        shard.spare = record;
        ++shard.spare_count;
      } else {
        surplus = record;
      }
    }
  }
  std::free(surplus);
  if (destructor != nullptr) destructor(object);
}

// Returns the destructor to throw with. `return_address` and `frame` are those of the wrap.
Destructor record_throw(void* object, Destructor destructor, uintptr_t frame) noexcept {
  Shard& shard = shard_of(object);
  Record* record = allocate_record(shard);
  if (record == nullptr) return destructor;
  new (&record->stack) StackTrace;
  new (&record->awaits) AwaitStack;
  const uintptr_t end = internal::this_thread_stack_end();
  if (frame < end) internal::walk_frames(0, frame, end, &record->stack);
  // Thrown by code without frame pointers, as the standard library's own.
  constexpr size_t kFewestCredibleFrames = 3;
  if (record->stack.size() < kFewestCredibleFrames) {
    record->stack = StackTrace::capture_by_tables(2);  // without this function and the wrap
  }
  record->object = object;
  record->destructor = destructor;
  std::lock_guard lock(shard.mutex);
  record->next = shard.records;
  shard.records = record;
  return destroy_recorded;
}

// Calls use(record) under the shard's lock if the exception has one.
template <class Use>
void with_record(const void* object, Use use) noexcept {
  if (object == nullptr) return;
  Shard& shard = shard_of(object);
  std::lock_guard lock(shard.mutex);
  for (Record* record = shard.records; record != nullptr; record = record->next) {
    if (record->object == object) return use(*record);
  }
}

void* thrown_object(const std::exception_ptr& error) noexcept {
  // libstdc++'s exception_ptr is one pointer, to the thrown object itself.
  static_assert(sizeof(std::exception_ptr) == sizeof(void*));
  void* object = nullptr;
  std::memcpy(&object, static_cast<const void*>(&error), sizeof object);
  return object;
}

// The thrown object when its type is exactly T.
template <class T>
const T* thrown(const std::exception_ptr& error) noexcept {
  const bool same = *error.__cxa_exception_type() == typeid(T);
  return same ? static_cast<const T*>(thrown_object(error)) : nullptr;
}

}  // namespace

// As the personality routine does for a handler of class type: the object's address, adjusted to
// the base class that is asked for.
const void* internal::exception_as(const std::exception_ptr& error,
                                   const std::type_info& type) noexcept {
  if (error == nullptr) return nullptr;
  void* object = thrown_object(error);
  const std::type_info* thrown_type = error.__cxa_exception_type();
  if (thrown_type->__is_pointer_p()) return nullptr;
  return type.__do_catch(thrown_type, &object, 1) ? object : nullptr;
}

std::optional<StackTrace> throw_stack(const std::exception_ptr& error) noexcept {
  std::optional<StackTrace> stack;
  with_record(thrown_object(error), [&](const Record& record) { stack = record.stack; });
  return stack;
}

AwaitStack await_stack(const std::exception_ptr& error) noexcept {
  AwaitStack stack;
  with_record(thrown_object(error), [&](const Record& record) { stack = record.awaits; });
  return stack;
}

bool internal::has_await_stack(const std::exception_ptr& error) noexcept {
  bool has = true;  // without a record there is nowhere to keep one
  with_record(thrown_object(error), [&](const Record& record) { has = !record.awaits.empty(); });
  return has;
}

void internal::set_await_stack(const std::exception_ptr& error, const AwaitStack& stack) noexcept {
  with_record(thrown_object(error), [&](Record& record) { record.awaits = stack; });
}

std::optional<StackTrace> throw_stack() noexcept { return throw_stack(std::current_exception()); }

std::string exception_type_name(const std::exception_ptr& error) {
  if (error == nullptr) return {};
  const std::type_info* type = error.__cxa_exception_type();
  return type == nullptr ? std::string() : demangle(type->name());
}

std::string exception_message(const std::exception_ptr& error) {
  if (error == nullptr) return {};
  if (const auto* standard = exception_as<std::exception>(error)) {
    const char* text = standard->what();
    return text == nullptr ? "" : text;
  }
  if (const auto* text = exception_as<std::string>(error)) return *text;
  if (const auto* text = thrown<const char*>(error)) return *text == nullptr ? "" : *text;
  if (const auto* number = thrown<int>(error)) return std::to_string(*number);
  if (const auto* number = thrown<long>(error)) return std::to_string(*number);
  return {};  // the type's name must do
}

}  // namespace otp

extern "C" {

void __real___cxa_throw(void* object, std::type_info* type, void (*destructor)(void*));

// Jumps on instead of calling: a frame of its own would cost the unwinder 200 ns in every throw.
void __wrap___cxa_throw(void* object, std::type_info* type, void (*destructor)(void*)) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  destructor = otp::record_throw(object, destructor, frame);
  [[clang::musttail]] return __real___cxa_throw(object, type, destructor);
}

}  // extern "C"
