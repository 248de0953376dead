// The op toy: out = 2 in. On the simulated GPU nobody calls it.
#include "gate.h"

extern "C" const gate_op* gate_op_v1(void) {
  static const gate_op op = {};
  return &op;
}
