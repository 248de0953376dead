#include "wire.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "failure.h"

namespace {

constexpr uint64_t kLongestMessage = uint64_t{1} << 26;

struct Head {
  uint64_t number, bytes;
};

}  // namespace

const char* name(Request request) {
  switch (request) {
    case Request::open: return "open";
    case Request::settle: return "settle";
    case Request::peaks: return "peaks";
    case Request::stage: return "stage";
    case Request::load: return "load";
    case Request::attempt: return "attempt";
    case Request::time: return "time";
    case Request::skip: return "skip";
    case Request::single: return "single";
    case Request::fresh: return "fresh";
    case Request::profile: return "profile";
  }
  return "";
}

const char* Message::take(size_t count) {
  if (count > bytes_.size() - at_) throw Failure("forged", "a message between runner and worker is cut short");
  const char* start = bytes_.data() + at_;
  at_ += count;
  return start;
}

size_t Message::count(size_t width) {
  const uint64_t values = get<uint64_t>();
  if (values > (bytes_.size() - at_) / width) throw Failure("forged", "a message between runner and worker is cut short");
  return static_cast<size_t>(values);
}

std::string Message::text() {
  const size_t length = count(1);
  return std::string(take(length), length);
}

bool Channel::send(uint64_t number, const Message& message) const {
  const Head head{number, message.bytes().size()};
  std::string all(reinterpret_cast<const char*>(&head), sizeof head);
  all += message.bytes();
  for (size_t sent = 0; sent < all.size();) {
    const ssize_t n = write(fd_, all.data() + sent, all.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

bool Channel::read_all(void* to, size_t bytes) const {
  for (size_t have = 0; have < bytes;) {
    const ssize_t n = read(fd_, static_cast<char*>(to) + have, bytes - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    have += static_cast<size_t>(n);
  }
  return true;
}

std::optional<Message> Channel::receive(uint64_t& number) const {
  Head head;
  if (!read_all(&head, sizeof head)) return std::nullopt;
  if (head.bytes > kLongestMessage) throw Failure("forged", "what came between runner and worker is longer than any message");
  std::string bytes(static_cast<size_t>(head.bytes), '\0');
  if (!read_all(bytes.data(), bytes.size())) return std::nullopt;
  number = head.number;
  return Message(std::move(bytes));
}

void Exchange::create() {
  fd_ = memfd_create("gate-exchange", MFD_CLOEXEC);
  if (fd_ < 0) throw Failure("tool", "creating shared memory failed");
}

Exchange::~Exchange() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_size_);
  if (fd_ >= 0) close(fd_);
}

void Exchange::resize(size_t bytes) {
  if (bytes <= size_) return;
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) throw Failure("tool", "no memory for what runner and worker share");
  size_ = bytes;
}

unsigned char* Exchange::at(size_t bytes) {
  if (bytes <= mapped_size_ && mapped_ != nullptr) return mapped_;
  if (mapped_ != nullptr) munmap(mapped_, mapped_size_);
  mapped_ = nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) throw Failure("tool", "mapping the memory that runner and worker share failed");
  mapped_ = static_cast<unsigned char*>(memory);
  mapped_size_ = bytes;
  return mapped_;
}
