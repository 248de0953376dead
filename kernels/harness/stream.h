// stream.h: the records that the program sends, one JSON object a line.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "failure.h"
#include "json.h"

// A RecordStream owns the program's real standard output, which the worker never
// has. Everything else that writes to file descriptor 1 ends on stderr.
class RecordStream {
 public:
  // take_stdout moves file descriptor 1 out of the way; false when it cannot.
  bool take_stdout();

  void config(const Json& body) {
    send("config", body, nullptr);
    announced_ = true;
  }
  void peaks(const Json& body) { send("peaks", body, &peaks_); }
  void begin(const Json& body) { send("begin", body, &begins_); }
  void check(const Json& body) { send("check", body, &checks_); }
  void time(const Json& body) { send("time", body, &times_); }
  void profile(const Json& body) { send("profile", body, &profiles_); }
  // alive says that the program is at work; it is not counted, and the config
  // record comes before it.
  void alive() {
    if (announced_) send("alive", Json(), nullptr);
  }
  // absent says why a unit cannot be measured in a regime.
  void absent(const Json& body) { send("absent", body, &absents_); }
  // error reports a failure of one unit; kernel and case are empty where it has none.
  void error(const std::string& kernel, const std::string& case_name, const Failure& failure);
  // spend adds to the milliseconds of one kind of work, which the end record tells.
  void spend(const char* work, std::chrono::duration<double, std::milli> time) { spent_[work] += time.count(); }
  // end closes the stream with the count of what was sent.
  void end();

  int errors() const { return errors_; }

 private:
  void send(const char* type, const Json& body, int* count);

  std::mutex writing_;
  std::atomic<bool> announced_{false};
  std::map<std::string, double> spent_;
  int fd_ = -1;
  int peaks_ = 0, begins_ = 0, checks_ = 0, times_ = 0, profiles_ = 0, absents_ = 0, errors_ = 0;
};
