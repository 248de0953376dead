#include "worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

Worker::Worker(RecordStream& records) : records_(records), random_(std::random_device{}()) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw Failure("tool", "making a socket failed");
  exchange_.create();
  channel_ = std::make_unique<Channel>(ends[0]);
  std::signal(SIGPIPE, SIG_IGN);
  process_ = fork();
  if (process_ < 0) throw Failure("tool", "starting the worker failed");
  if (process_ == 0) start(ends[1]);
  close(ends[1]);
}

// In the child: nothing of the runner's stays open but the socket and the shared
// memory, and standard output goes where messages go.
void Worker::start(int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_DFL);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) std::_Exit(1);
  if (fcntl(socket, F_SETFD, 0) != 0 || fcntl(exchange_.fd(), F_SETFD, 0) != 0) std::_Exit(1);
  const std::string to = std::to_string(socket), memory = std::to_string(exchange_.fd());
  execl("/proc/self/exe", "gate-harness", "worker", to.c_str(), memory.c_str(), static_cast<char*>(nullptr));
  std::_Exit(1);
}

Worker::~Worker() {
  if (process_ > 0) {
    close(channel_->fd());
    (void)waitpid(process_, nullptr, 0);
  }
}

unsigned char* Worker::shared(size_t bytes) {
  exchange_.resize(bytes);
  return exchange_.at(bytes);
}

void Worker::begin(Request request, const Message& body) {
  number_ = random_();
  asked_ = name(request);
  begun_ = std::chrono::steady_clock::now();
  Message message = std::move(Message().put(request));
  if (!channel_->send(number_, Message(message.bytes() + body.bytes()))) end_as_worker_did();
}

Message Worker::finish() {
  for (;;) {
    uint64_t number = 0;
    std::optional<Message> answer = channel_->receive(number);
    if (!answer) end_as_worker_did();
    const auto now = std::chrono::steady_clock::now();
    records_.spend(asked_, now - begun_);
    begun_ = now;
    if (number != number_) throw Failure("forged", "something other than the harness wrote into its socket");
    switch (answer->get<Answer>()) {
      case Answer::alive: records_.alive(); break;
      case Answer::result: return std::move(*answer);
      case Answer::failure: {
        const std::string kind = answer->text();
        Failure failure(kind, answer->text());
        const bool coded = answer->get<bool>();
        const int code = answer->get<int>();
        const std::string name = answer->text();
        if (coded) failure.code = code, failure.name = name;
        lost_ = answer->get<bool>();
        throw failure;
      }
      default: throw Failure("forged", "the worker gave an answer that there is not");
    }
  }
}

Message Worker::ask(Request request, const Message& body) {
  begin(request, body);
  return finish();
}

// A crash of the worker is that of a kernel, and has to look like one from outside.
void Worker::end_as_worker_did() const {
  int status = 0;
  (void)waitpid(process_, &status, 0);
  if (WIFSIGNALED(status)) {
    const rlimit none{0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    std::signal(WTERMSIG(status), SIG_DFL);
    (void)raise(WTERMSIG(status));
  }
  std::_Exit(WIFEXITED(status) && WEXITSTATUS(status) > 1 ? WEXITSTATUS(status) : 7);
}
