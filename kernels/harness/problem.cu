#include "problem.h"

bool Problem::in_place() const {
  for (int input : held_in)
    if (input >= 0) return true;
  return false;
}

size_t Problem::sum(const std::vector<size_t>& sizes) {
  size_t all = 0;
  for (size_t bytes : sizes) all += bytes;
  return all;
}

size_t Problem::call_bytes() const {
  size_t all = all_inputs();
  for (size_t i = 0; i < output_bytes.size(); ++i)
    if (held_in[i] < 0) all += output_bytes[i];
  return all;
}

void Problem::put(Message& message) const {
  message.put(name).put(dims).put(input_bytes).put(output_bytes).put(held_in);
  message.put<uint64_t>(alignment).put<uint64_t>(workspace_bytes).put<bool>(repeatable);
}

Problem Problem::get(Message& message) {
  Problem p;
  p.name = message.text();
  p.dims = message.list<int64_t>();
  p.input_bytes = message.list<size_t>();
  p.output_bytes = message.list<size_t>();
  p.held_in = message.list<int>();
  p.alignment = message.get<uint64_t>();
  p.workspace_bytes = message.get<uint64_t>();
  p.repeatable = message.get<bool>();
  return p;
}
