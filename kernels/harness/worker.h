// worker.h: the process that holds the device and the kernels, from the runner's
// side.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "failure.h"
#include "stream.h"
#include "wire.h"

class Worker {
 public:
  // The worker is started at once, as this program under other arguments, which
  // are the same whatever is asked of it.
  explicit Worker(RecordStream& records);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // begin sends a request, and finish waits for its result; ask is both. A Failure
  // of the worker is thrown. Where the worker dies, this process ends as it did.
  void begin(Request request, const Message& body = {});
  Message finish();
  Message ask(Request request, const Message& body = {});

  // shared is memory that both sides see.
  unsigned char* shared(size_t bytes);
  // lost is true after an error that the device's context does not survive.
  bool lost() const { return lost_; }

 private:
  [[noreturn]] void end_as_worker_did() const;
  void start(int socket);

  RecordStream& records_;
  Exchange exchange_;
  std::unique_ptr<Channel> channel_;
  pid_t process_ = -1;
  std::mt19937_64 random_;
  uint64_t number_ = 0;
  const char* asked_ = "";
  std::chrono::steady_clock::time_point begun_;
  bool lost_ = false;
};
