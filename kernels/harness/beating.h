// beating.h: signs of life during work on the host.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "stream.h"

// A Beating sends a sign of life every second while it lives.
class Beating {
 public:
  explicit Beating(RecordStream& records) : thread_([this, &records] { run(records); }) {}
  Beating(const Beating&) = delete;
  Beating& operator=(const Beating&) = delete;
  ~Beating() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

 private:
  void run(RecordStream& records) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) records.alive();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};
