#include "serve.h"

#include <map>
#include <memory>

#include "peaks.h"
#include "stage.h"
#include "wire.h"

// Exported by the runtime; the header that declares them is not part of every
// compiler package.
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);

namespace {

// A Server holds what was loaded, since every stage may use it again.
class Server {
 public:
  Server(int socket, int exchange) : channel_(socket) { exchange_.adopt(exchange); }

  void run() {
    while (std::optional<Message> request = channel_.receive(number_)) {
      Message answer;
      try {
        answer = handle(*request);
      } catch (const Failure& failure) {
        answer = refusal(failure);
      } catch (const std::exception& e) {
        answer = refusal(Failure("tool", e.what()));
      }
      if (!channel_.send(number_, answer)) return;
    }
  }

 private:
  Message handle(Message& request);
  Message open();
  Message stage(Message& request);
  Message load(Message& request);
  Message attempt(Message& request);
  Message time(Message& request);
  Message profile();

  static Message result() { return std::move(Message().put(Answer::result)); }
  static Message refusal(const Failure& failure);
  static void put(Message& message, const Findings& f) { message.put(f.inputs).put(f.before).put(f.after).put(f.others).put(f.other_set); }
  Stage& staged() const {
    if (stage_ == nullptr) throw Failure("tool", "nothing was set up");
    return *stage_;
  }
  // The runner has made room for the outputs of this many images.
  size_t outputs() const { return output_bytes_ * kMostImages; }

  Channel channel_;
  Exchange exchange_;
  uint64_t number_ = 0;
  Device device_;
  std::map<std::string, std::unique_ptr<Contender>> contenders_;
  std::unique_ptr<Stage> stage_;
  size_t input_bytes_ = 0, output_bytes_ = 0;
};

Message Server::refusal(const Failure& failure) {
  Message answer = std::move(Message().put(Answer::failure).put(failure.kind).put(failure.message));
  answer.put(failure.code.has_value()).put(failure.code.value_or(0)).put(failure.name.value_or(""));
  return std::move(answer.put(context_lost()));
}

Message Server::handle(Message& request) {
  switch (request.get<Request>()) {
    case Request::open: return open();
    case Request::stage: return stage(request);
    case Request::load: return load(request);
    case Request::attempt: return attempt(request);
    case Request::time: return time(request);
    case Request::fresh: {
      const Regime regime = request.get<Regime>();
      return std::move(result().put(staged().fresh(regime, exchange_.at(outputs()))));
    }
    case Request::single: return std::move(result().put(staged().single(request.get<Regime>())));
    case Request::skip: {
      const Regime regime = request.get<Regime>();
      const int set = request.get<int>();
      Message answer = result();
      put(answer, staged().skip(regime, set, request.get<bool>()));
      return answer;
    }
    case Request::settle: {
      device_.settle(request.get<double>());
      return result();
    }
    case Request::peaks: {
      Message answer = result();
      measure_peaks(device_, request.get<int>()).put(answer);
      return answer;
    }
    case Request::profile: return profile();
  }
  throw Failure("forged", "the runner asks for what there is not");
}

Message Server::open() {
  device_.open();
  return std::move(result().put(device_.describe().text()));
}

Message Server::stage(Message& request) {
  stage_.reset();
  const std::string id = request.text(), path = request.text();
  const bool reference = request.get<bool>();
  StageOrder order = StageOrder::get(request);
  std::unique_ptr<Contender>& contender = contenders_[id];
  if (contender == nullptr) contender = std::make_unique<Contender>(id, path, reference);
  input_bytes_ = order.problem.all_inputs();
  output_bytes_ = order.problem.all_outputs();
  const auto alive = [this] { (void)channel_.send(number_, Message().put(Answer::alive)); };
  stage_ = std::make_unique<Stage>(device_, *contender, std::move(order), alive);
  Message answer = result();
  for (Regime regime : {Regime::warm, Regime::cold}) {
    const Plan& plan = stage_->plan(regime);
    answer.put(plan.calls).put(plan.sets).put(plan.absent).put(plan.calls > 0 ? stage_->kernel_nodes(regime) : 0);
    answer.put(plan.calls > 0 ? stage_->launches(regime) : std::vector<uint32_t>{});
  }
  return answer;
}

Message Server::load(Message& request) {
  const int images = request.get<int>();
  staged().load(exchange_.at(static_cast<size_t>(images) * input_bytes_), images);
  return result();
}

Message Server::attempt(Message& request) {
  Attempt attempt{};
  attempt.setting = request.get<Setting>();
  attempt.bands.seed = request.get<uint32_t>();
  attempt.bands.byte = request.get<uint32_t>();
  attempt.poison.seed = request.get<uint32_t>();
  attempt.poison.byte = request.get<uint32_t>();
  Message answer = result();
  put(answer, staged().attempt(attempt, exchange_.at(outputs())));
  return answer;
}

Message Server::time(Message& request) {
  const Regime regime = request.get<Regime>();
  const double warmup_ms = request.get<double>();
  const int warmup_batches = request.get<int>(), batches = request.get<int>();
  const Times times = staged().time(regime, warmup_ms, warmup_batches, batches, exchange_.at(outputs()));
  Message answer = result();
  answer.put(times.batches_ns).put(times.host_ns).put(times.sm_mhz).put(times.before).put(times.after).put(times.sampling_ms);
  put(answer, times.found);
  return answer;
}

Message Server::profile() {
  Stage& stage = staged();
  stage.ready_call();
  stage.call();
  must(cudaProfilerStart(), "starting the profiler");
  try {
    stage.call();
  } catch (...) {
    (void)cudaProfilerStop();  // the set-up of the next case is not profiled
    throw;
  }
  must(cudaProfilerStop(), "stopping the profiler");
  return result();
}

}  // namespace

int serve(int socket, int exchange) {
  Server(socket, exchange).run();
  return 0;
}
