package harness

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDefects plants one defect at a time and needs a GPU: everything that makes
// a result wrong or a measurement empty must be named, and a correct kernel must
// pass by the same way.
func TestDefects(t *testing.T) {
	program := build(t)
	if records, code := run(t, program, "device"); code != 0 {
		t.Skipf("no device: %v", records[1]["error"]["message"])
	}
	kernel, op := buildDefects(t)
	tests := []struct {
		defect, mode string
		reason       string // part of a check's reasons: the unit ends as fail
		kind         string // of the error record, if there must be one
	}{
		{"", "check", "", ""},
		{"", "time", "", ""},
		{"", "profile", "", ""},
		{"writes_nothing", "check", "were not written", "empty_graph"},
		{"writes_nothing", "time", "", "empty_graph"},
		{"skips_tail", "check", "4096 of 8192 elements were not written", ""},
		{"nan", "check", "are not finite where the reference is", ""},
		{"beyond_output", "check", "memory after a tensor was written", ""},
		{"before_output", "check", "memory before a tensor was written", ""},
		{"writes_input", "check", "an input was written", ""},
		{"writes_input", "time", "", "output_changed"},
		{"unrepeatable", "check", "two runs on the same inputs differ", ""},
		{"first_call_only", "check", "two runs on the same inputs differ", "empty_graph"},
		{"later_calls_differ", "time", "", "output_changed"},
		{"own_stream", "check", "", "empty_graph"},
		{"own_stream", "time", "", "empty_graph"},
		{"default_stream", "check", "", "empty_graph"},
		{"default_stream", "time", "", "empty_graph"},
		{"waits", "check", "", "capture"},
		{"waits", "time", "", "capture"},
		{"refuses", "check", "", "cuda"},
		{"faults", "check", "", "cuda"},
		{"prints", "check", "", "unsupported"},
	}
	for _, test := range tests {
		t.Run(test.defect+"/"+test.mode, func(t *testing.T) {
			t.Setenv("GATE_DEFECT", test.defect)
			records, code := run(t, program, test.mode, "--op", op, "--tolerance", "relative_error=1e-3",
				"--case", "tiny=B:1,H:1,S:128,D:64", "--kernel", "k="+kernel, "--run", "k@tiny")
			checkFrame(t, records, code)
			if got, failure := errorKind(records); got != test.kind {
				t.Errorf("error kind %q, want %q: %v", got, test.kind, failure)
			}
			if test.mode != "check" {
				return
			}
			if passed, reasons := verdicts(records); test.reason != "" && (passed > 0 || !contains(reasons, test.reason)) {
				t.Errorf("%d classes passed; reasons %q, want %q", passed, reasons, test.reason)
			} else if test.reason == "" && len(reasons) > 0 {
				t.Errorf("reasons %q, want none", reasons)
			}
		})
	}
}

func buildDefects(t *testing.T) (kernel, op string) {
	t.Helper()
	dir := t.TempDir()
	kernel, op = filepath.Join(dir, "defects.so"), filepath.Join(dir, "attention.so")
	for _, command := range []*exec.Cmd{
		exec.Command(findCompiler(t), "-arch=native", "-shared", "-Xcompiler", "-fPIC", "-I", ".", "testdata/defects.cu", "-o", kernel),
		exec.Command("g++", "-O3", "-shared", "-fPIC", "-std=c++17", "-I", ".", "../attention/attention.cc", "-o", op),
	} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	return kernel, op
}

// errorKind is the kind of the first error record, empty where there is none.
func errorKind(records []record) (kind string, failure map[string]any) {
	for _, r := range records {
		if failure, ok := r["error"]; ok {
			kind, _ := failure["kind"].(string)
			return kind, failure
		}
	}
	return "", nil
}

// verdicts counts the checks that passed and gathers why the others did not.
func verdicts(records []record) (passed int, reasons []string) {
	for _, r := range records {
		check, ok := r["check"]
		if !ok {
			continue
		}
		if check["status"] == "pass" {
			passed++
		}
		list, _ := check["reasons"].([]any)
		for _, reason := range list {
			text, _ := reason.(string)
			reasons = append(reasons, text)
		}
	}
	return passed, reasons
}

func contains(reasons []string, part string) bool {
	return slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(reason, part) })
}
