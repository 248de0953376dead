#include "stream.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

bool RecordStream::take_stdout() {
  fd_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
  return fd_ >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

void RecordStream::send(const char* type, const Json& body, int* count) {
  const std::lock_guard lock(writing_);
  const std::string line = Json().field(type, body).text() + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t n = write(fd_, line.data() + sent, line.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(1);  // nobody reads any more: there is no one to tell
    sent += static_cast<size_t>(n);
  }
  if (count != nullptr) ++*count;
}

void RecordStream::error(const std::string& kernel, const std::string& case_name, const Failure& failure) {
  Json body;
  kernel.empty() ? body.null("kernel") : body.field("kernel", kernel);
  case_name.empty() ? body.null("case") : body.field("case", case_name);
  body.field("kind", failure.kind).field("code", failure.code).field("name", failure.name);
  send("error", body.field("message", failure.message), &errors_);
}

void RecordStream::end() {
  Json counts;
  counts.field("peaks", peaks_).field("begin", begins_).field("check", checks_).field("time", times_);
  Json milliseconds;
  for (const auto& [work, spent] : spent_) milliseconds.field(work, std::round(spent * 10) / 10);
  send("end", counts.field("profile", profiles_).field("absent", absents_).field("error", errors_).field("ms", milliseconds), nullptr);
}
