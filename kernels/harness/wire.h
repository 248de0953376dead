// wire.h: what the runner and the worker say to each other. The runner is the
// program that was started: it knows the op, the references and what is asked
// for, and it writes the records. The worker is a process of its own that loads
// the kernels; it holds the device and nothing else.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

// A Message is a sequence of values, read in the order in which they were put.
class Message {
 public:
  Message() = default;
  explicit Message(std::string bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  Message& put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
    return *this;
  }
  Message& put(const std::string& text) {
    put<uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  template <class T>
  Message& put(const std::vector<T>& values) {
    put<uint64_t>(values.size());
    for (const T& value : values) put(value);
    return *this;
  }

  // The readers throw a Failure of kind forged when the message ends too early.
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string text();
  template <class T>
  std::vector<T> list() {
    std::vector<T> values(count(sizeof(T)));
    for (T& value : values) value = get<T>();
    return values;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  const char* take(size_t count);
  size_t count(size_t width);

  std::string bytes_;
  size_t at_ = 0;
};

// What the runner asks of the worker, in the order in which it comes up.
enum class Request : uint8_t { open, settle, peaks, stage, load, attempt, time, skip, single, fresh, profile };
const char* name(Request request);
// How the worker answers: with a result, with a Failure, or that it is at work.
enum class Answer : uint8_t { result, failure, alive };

// Images of inputs that differ from each other, at most.
constexpr int kMostImages = 4;

// A Channel is one end of the socket. Every frame carries a number that the
// runner draws for each request, so that a line written into the socket by
// somebody who did not read the request is noticed.
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  // send is false when nobody reads any more.
  bool send(uint64_t number, const Message& message) const;
  // receive is empty when the other end was closed.
  std::optional<Message> receive(uint64_t& number) const;

 private:
  bool read_all(void* to, size_t bytes) const;

  int fd_;
};

// An Exchange is memory that runner and worker share, for tensors.
class Exchange {
 public:
  // create makes one; adopt takes the other's by its descriptor.
  void create();
  void adopt(int fd) { fd_ = fd; }
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  int fd() const { return fd_; }
  // resize is the runner's; at maps at least that many bytes.
  void resize(size_t bytes);
  unsigned char* at(size_t bytes);

 private:
  int fd_ = -1;
  unsigned char* mapped_ = nullptr;
  size_t size_ = 0, mapped_size_ = 0;
};
