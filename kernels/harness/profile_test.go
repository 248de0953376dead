package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// failsInOneCase is the kernel of testdata/declared, but of the case with 500 elements
// its third call outside a capture fails after one of its two launches: the one that
// is profiled.
const failsInOneCase = `#define gate_run add_run
#include "add.cu"
#undef gate_run

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  static int eager = 0;
  cudaStreamCaptureStatus status;
  if (const int error = cudaStreamIsCapturing(stream, &status)) return error;
  if (call->dims[0] != 500 || status != cudaStreamCaptureStatusNone || ++eager < 3) return add_run(call, stream);
  float* x = static_cast<float*>(call->outputs[0]);
  (void)launch(1, 1, stream, hand_over, static_cast<const float*>(x), x);
  return -1;
}
`

// needsInputs is the same kernel; its calls after the first one outside a capture, the
// one that sets up, fail where the inputs hold nothing but zeros.
const needsInputs = `#define gate_run add_run
#include "add.cu"
#undef gate_run

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  static int64_t last = 0;
  cudaStreamCaptureStatus status;
  if (const int error = cudaStreamIsCapturing(stream, &status)) return error;
  if (status != cudaStreamCaptureStatusNone) return add_run(call, stream);
  const bool first = last != call->dims[0];
  last = call->dims[0];
  const float* y = static_cast<const float*>(call->inputs[1]);
  bool zero = true;
  for (int64_t i = 0; i < call->dims[0]; ++i) zero = zero && y[i] == 0;
  return !first && zero ? -1 : add_run(call, stream);
}
`

var profiledLaunches = regexp.MustCompile(`(?m)^profiled ([0-9]+) launches$`)

// asCaptured are the two launches of a call of testdata/declared, by case.
var asCaptured = map[string]string{
	"some": "[map[block:[256 1 1] grid:[4 1 1]] map[block:[1 1 1] grid:[1 1 1]]]",
	"half": "[map[block:[256 1 1] grid:[2 1 1]] map[block:[1 1 1] grid:[1 1 1]]]",
	"few":  "[map[block:[256 1 1] grid:[1 1 1]] map[block:[1 1 1] grid:[1 1 1]]]",
}

// TestProfileOfSeveralCases: what a profiler sees is one call of each case, in the
// order asked for, and each record says how many launches that call makes. A case that
// fails between start and stop costs no other its record, and the profiler is off
// while the next is set up.
func TestProfileOfSeveralCases(t *testing.T) {
	s := buildStandIn(t)
	dir := t.TempDir()
	op, source, needs := filepath.Join(dir, "op.so"), filepath.Join(dir, "fails.cu"), filepath.Join(dir, "needs.cu")
	s.compile(t, op, "-shared", "-fPIC", "testdata/declared/add.cc")
	for file, text := range map[string]string{source: failsInOneCase, needs: needsInputs} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		source   string
		records  []string
		launches []string // by what a profiler sees between a start and a stop
	}{
		{"testdata/declared/add.cu", []string{"begin some", "profile some 1 2", "begin half", "profile half 1 2", "begin few", "profile few 1 2"}, []string{"2", "2", "2"}},
		{needs, []string{"begin some", "profile some 1 2", "begin half", "profile half 1 2", "begin few", "profile few 1 2"}, []string{"2", "2", "2"}},
		{source, []string{"begin some", "profile some 1 2", "begin half", "error half", "begin few", "profile few 1 2"}, []string{"2", "0", "2"}},
	} {
		kernel := filepath.Join(dir, "kernel.so")
		s.compile(t, kernel, "-shared", "-fPIC", "-I", "testdata/declared", "-x", "c++", test.source, "-L"+s.dir, "-lcudart")
		var out, said bytes.Buffer
		command := exec.Command(s.program, "profile", "--op", op, "--kernel", "k="+kernel, "--case", "few=N:64", "--case", "half=N:500", "--case", "some=N:1000",
			"--run", "k@some", "--run", "k@half", "--run", "k@few", "--inout", "x", "--workspace", "4096", "--varies")
		command.Stdout, command.Stderr = &out, &said
		err := command.Run()
		if failed := strings.Contains(strings.Join(test.records, " "), "error"); (err != nil) != failed {
			t.Errorf("%s: %v\n%s", test.source, err, said.Bytes())
		}
		var got []string
		for _, r := range parse(t, out.Bytes()) {
			for kind, body := range r {
				switch kind {
				case "begin", "error":
					got = append(got, fmt.Sprint(kind, " ", body["case"]))
				case "profile":
					got = append(got, fmt.Sprint(kind, " ", body["case"], " ", body["calls"], " ", body["kernel_nodes"]))
					if launches, want := fmt.Sprint(body["launches"]), asCaptured[body["case"].(string)]; launches != want {
						t.Errorf("%s: launches of %s are %s, want %s", test.source, body["case"], launches, want)
					}
				}
			}
		}
		if !slices.Equal(got, test.records) {
			t.Errorf("%s: records %q, want %q\n%s", test.source, got, test.records, out.Bytes())
		}
		var launches []string
		for _, m := range profiledLaunches.FindAllSubmatch(said.Bytes(), -1) {
			launches = append(launches, string(m[1]))
		}
		if !slices.Equal(launches, test.launches) {
			t.Errorf("%s: a profiler sees launches %q, want %q\n%s", test.source, launches, test.launches, said.Bytes())
		}
	}
}
