#include "data.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "failure.h"
#include "rows.h"

namespace {

constexpr int kOrdinarySeeds = 32, kOtherSeeds = 2, kLeastSeeds = 2;
constexpr size_t kPoolBytes = size_t{256} << 20;  // of one case

uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// A digest against damage, not against an adversary: who can write into the
// folder can write a digest as well.
uint64_t digest(const std::string& bytes) {
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32)
    for (size_t lane = 0; lane < 4; ++lane) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i + 8 * lane, 8);
      lanes[lane] = (lanes[lane] ^ word) * 0x9FB21C651E98DF25u;
      lanes[lane] ^= lanes[lane] >> 29;
    }
  uint64_t sum = mix(bytes.size());
  for (uint64_t lane : lanes) sum = mix(sum ^ lane);
  for (; i < bytes.size(); ++i) sum = mix(sum ^ static_cast<unsigned char>(bytes[i]));
  return sum;
}

// A file is the digest of the rest, then the rest.
bool read_file(const std::string& path, size_t want, std::string& bytes) {
  std::ifstream in(path, std::ios::binary);
  uint64_t sum = 0;
  bytes.resize(want);
  if (!in.read(reinterpret_cast<char*>(&sum), sizeof sum) || !in.read(bytes.data(), static_cast<std::streamsize>(want))) return false;
  return in.peek() == std::ifstream::traits_type::eof() && digest(bytes) == sum;
}

void write_file(const std::string& path, const std::string& bytes) {
  const std::string part = path + ".part";
  const uint64_t sum = digest(bytes);
  std::ofstream out(part, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&sum), sizeof sum).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush() || std::rename(part.c_str(), path.c_str()) != 0) throw Failure("tool", "writing " + path + " failed");
}

size_t result_bytes(const Op& op, const Problem& problem) {
  size_t all = 0;
  for (size_t i = 0; i < problem.output_bytes.size(); ++i) all += problem.output_bytes[i] / op.element_bytes(static_cast<int>(i)) * sizeof(double);
  return all;
}

}  // namespace

Data::Data(const Op& op, const Options& options) : op_(op), folder_(options.data), salt_(options.seed), choice_(mix(options.seed)) {}

// mission-1x8x512x64: a case that gets other dims, or of which other rows are compared,
// gets another folder.
std::string Data::folder(const Problem& problem) const {
  std::string name = folder_ + "/" + problem.name;
  for (size_t i = 0; i < problem.dims.size(); ++i) name += (i == 0 ? "-" : "x") + std::to_string(problem.dims[i]);
  if (problem.rows > 0) name += "-rows" + std::to_string(problem.rows);
  return name;
}

// Half of what may be kept is for the ordinary class, of which every process takes
// six images.
int Data::pool(const Problem& problem, int input_class) const {
  const size_t half = fitting(problem) / 2;
  if (input_class == 0) return static_cast<int>(std::clamp<size_t>(half, kLeastSeeds, kOrdinarySeeds));
  return static_cast<int>(std::clamp<size_t>(half / static_cast<size_t>(op_.classes()), 1, kOtherSeeds));
}

size_t Data::fitting(const Problem& problem) const {
  return std::max<size_t>(kLeastSeeds, kPoolBytes / (problem.all_inputs() + result_bytes(op_, problem)));
}

uint64_t Data::seed(const Problem& problem, int input_class, int index) const {
  const auto salt = salts_.find(problem.name);
  return mix((salt == salts_.end() ? salt_ : salt->second) + mix(static_cast<uint64_t>(input_class) * 1000003u + static_cast<uint64_t>(index)));
}

std::string Data::file(const Problem& problem, int input_class, int index, const char* what) const {
  return folder(problem) + "/" + std::to_string(input_class) + "." + std::to_string(index) + "." + what;
}

Golden Data::compute(const Problem& problem, int input_class, int index) const {
  Golden golden;
  golden.seed = seed(problem, input_class, index);
  golden.inputs = op_.inputs(problem, input_class, golden.seed);
  golden.outputs = op_.reference(problem, golden.inputs);
  return golden;
}

bool Data::read(const Problem& problem, int input_class, int index, Golden& golden) const {
  std::string inputs, results;
  if (folder_.empty() || !read_file(file(problem, input_class, index, "inputs"), problem.all_inputs(), inputs) ||
      !read_file(file(problem, input_class, index, "results"), result_bytes(op_, problem), results))
    return false;
  golden.seed = seed(problem, input_class, index);
  auto input = inputs.begin();
  for (size_t bytes : problem.input_bytes) {
    golden.inputs.emplace_back(input, input + static_cast<std::ptrdiff_t>(bytes));
    input += static_cast<std::ptrdiff_t>(bytes);
  }
  const char* from = results.data();
  for (size_t i = 0; i < problem.output_bytes.size(); ++i) {
    std::vector<double> values(problem.output_bytes[i] / op_.element_bytes(static_cast<int>(i)));
    std::memcpy(values.data(), from, values.size() * sizeof(double));
    from += values.size() * sizeof(double);
    golden.outputs.push_back(std::move(values));
  }
  return true;
}

void Data::write(const Problem& problem, int input_class, int index) const {
  Golden there;
  if (read(problem, input_class, index, there)) return;
  const Golden golden = compute(problem, input_class, index);
  std::string inputs, results;
  for (const Bytes& input : golden.inputs) inputs.append(input.begin(), input.end());
  for (const std::vector<double>& values : golden.outputs)
    results.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  write_file(file(problem, input_class, index, "inputs"), inputs);
  write_file(file(problem, input_class, index, "results"), results);
}

void Data::prepare(const Problem& problem) {
  if (mkdir(folder(problem).c_str(), 0755) != 0 && errno != EEXIST) throw Failure("tool", "making the folder " + folder(problem) + " failed");
  if (!read_salt(problem)) write_file(folder(problem) + "/salt", std::string(reinterpret_cast<const char*>(&salt_), sizeof salt_));
  if (!read_salt(problem)) throw Failure("tool", "what was written to " + folder(problem) + " cannot be read");
  // What does not fit is computed when it is used.
  std::vector<std::pair<int, int>> wanted;
  for (int input_class = 0; input_class < op_.classes(); ++input_class)
    for (int i = 0; i < pool(problem, input_class); ++i) wanted.emplace_back(input_class, i);
  wanted.resize(problem.sampled() ? 0 : std::min(wanted.size(), fitting(problem)));
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::string why;
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < wanted.size() && !failed;) {
      try {
        write(problem, wanted[i].first, wanted[i].second);
      } catch (const Failure& failure) {
        if (!failed.exchange(true)) why = failure.message;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (failed) throw Failure("op", why);
}

// read_salt reads what the seeds of a case's folder follow from.
bool Data::read_salt(const Problem& problem) {
  if (folder_.empty() || salts_.count(problem.name) != 0) return !folder_.empty();
  std::string bytes;
  if (!read_file(folder(problem) + "/salt", sizeof(uint64_t), bytes)) return false;
  std::memcpy(&salts_[problem.name], bytes.data(), sizeof(uint64_t));
  return true;
}

// The seed of the inputs leads to no other process's, and not to the choice of rows: a
// kernel that found it would know nothing of what is compared.
Golden Data::sample(const Problem& problem, int input_class, int slot) const {
  const uint64_t place = mix(static_cast<uint64_t>(input_class) * 1000003u + static_cast<uint64_t>(slot));
  Golden golden;
  golden.seed = mix(salt_ + place) ^ salt_;
  golden.inputs = op_.inputs(problem, input_class, golden.seed);
  golden.finite = op_.finite(golden.inputs);
  const std::vector<int64_t> notable = op_.notable(problem, input_class);
  std::set<int64_t> rows(notable.begin(), notable.end());
  for (int64_t row : draw_rows(problem.rows, problem.all_rows, problem.block_rows, mix(choice_ ^ place))) rows.insert(row);
  golden.rows.assign(rows.begin(), rows.end());
  golden.outputs = op_.reference(problem, golden.inputs, golden.rows);
  for (const std::vector<double>& values : golden.outputs)
    if (golden.finite && !std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }))
      throw Failure("op", "a result of class " + op_.class_name(input_class) + " is not finite, and every input is");
  return golden;
}

void Data::forget(const Problem& problem) {
  if (!problem.sampled()) return;
  for (auto at = chosen_.begin(); at != chosen_.end();) at = std::get<0>(at->first) == problem.name ? chosen_.erase(at) : std::next(at);
}

const Golden& Data::golden(const Problem& problem, int input_class, int slot) {
  (void)read_salt(problem);
  const auto [entry, fresh] = chosen_.try_emplace({problem.name, input_class, slot});
  Golden& golden = entry->second;
  if (!fresh) return golden;
  const uint64_t size = static_cast<uint64_t>(pool(problem, input_class));
  const int index = static_cast<int>((mix(choice_ + static_cast<uint64_t>(input_class)) + static_cast<uint64_t>(slot)) % size);
  try {
    if (problem.sampled()) golden = sample(problem, input_class, slot);
    else if (!read(problem, input_class, index, golden)) golden = compute(problem, input_class, index);
  } catch (...) {
    chosen_.erase(entry);
    throw;
  }
  return golden;
}
