package harness

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Which rows are drawn decides what a check of long sequences can see, so the choice
// is held to laws of its own.
func TestRowsLaws(t *testing.T) {
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++")
	}
	program := filepath.Join(t.TempDir(), "laws")
	args := append(slices.Clone(sanitized), "-I", ".", "testdata/rows_laws.cc", "-x", "c++", "rows.cu", "-o", program)
	if out, err := exec.Command(cxx, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(" 0 broken")) || bytes.Count(out, []byte("ok   ")) < 12 {
		t.Errorf("%v\n%s", err, out)
	}
}

// A sampledOp is the op twice and its kernel, on 8 blocks of 512 rows.
type sampledOp struct {
	*standIn
	op, kernel string
}

func buildSampled(t *testing.T, flags ...string) sampledOp {
	t.Helper()
	s := sampledOp{standIn: buildStandIn(t), op: filepath.Join(t.TempDir(), "op.so"), kernel: filepath.Join(t.TempDir(), "kernel.so")}
	s.compile(t, s.op, append([]string{"-shared", "-fPIC", "testdata/sampled/twice.cc"}, flags...)...)
	s.compile(t, s.kernel, "-shared", "-fPIC", "-fno-gnu-unique", "-x", "c++", "testdata/sampled/twice.cu", "-L"+s.dir, "-lcudart")
	return s
}

// run checks or times the kernel with a defect.
func (s sampledOp) run(t *testing.T, mode, defect string, more ...string) (records []record, code int) {
	t.Helper()
	t.Setenv("GATE_DEFECT", defect)
	args := []string{mode, "--op", s.op, "--case", "some=G:8,S:512,D:4", "--tolerance", "relative_error=1e-4", "--exact", "largest", "--kernel", "k=" + s.kernel, "--run", "k@some"}
	if mode == "time" {
		args = append(args, "--batches", "4", "--batch-us", "100", "--warmup-ms", "0")
	}
	records, code = run(t, s.program, append(args, more...)...)
	checkFrame(t, records, code)
	return records, code
}

// compared is what the checks say of rows: how many of how many, by class.
func compared(records []record) map[string]string {
	found := map[string]string{}
	for _, r := range records {
		if check, ok := r["check"]; ok {
			found[fmt.Sprint(check["class"])] = fmt.Sprintf("%v of %v", check["rows"], check["all_rows"])
		}
	}
	return found
}

// TestSampledRows: where 256 of 4096 rows are compared, what is wrong in many rows or
// in a tile is found, and what needs no reference is found in every row.
func TestSampledRows(t *testing.T) {
	s := buildSampled(t)
	for _, test := range []struct {
		defect, reason string
		timed          string // the kind of the error when it is timed, of some
	}{
		{"", "", ""},
		{"scattered", "is above 0.0001", "wrong_when_timed"},
		{"first_tile", "is above 0.0001", ""},
		{"last_tile", "is above 0.0001", ""},
		{"index", "compared elements differ from the exact result", ""},
		{"nan", "4 of 20480 elements are not finite where the reference is", "wrong_when_timed"},
		{"unwritten", "5 of 20480 elements were not written", ""},
		{"varies", "two runs on the same inputs differ", "output_changed"},
		{"hides_nan", "1 of 20480 elements are not finite where the reference is, or finite where it is not", ""},
	} {
		t.Run(test.defect, func(t *testing.T) {
			records, _ := s.run(t, "check", test.defect, "--rows", "some=256", "--seed", "7")
			passed, reasons := verdicts(records)
			if test.reason == "" && (passed != 2 || len(reasons) > 0) || test.reason != "" && !contains(reasons, test.reason) {
				t.Errorf("%d classes passed, %q, want %q", passed, reasons, test.reason)
			}
			if got := compared(records); got["normal"] != "256 of 4096" || got["not_finite"] != "257 of 4096" && got["not_finite"] != "256 of 4096" {
				t.Errorf("compared %v", got)
			}
			if !slices.Contains([]string{"", "scattered", "nan", "varies"}, test.defect) {
				return
			}
			records, _ = s.run(t, "time", test.defect, "--rows", "some=256", "--seed", "7")
			if kind, failure := errorKind(records); kind != test.timed {
				t.Errorf("timed: %v, want %q", failure, test.timed)
			}
		})
	}
}

// TestRowsAreDrawnAnew: ten wrong rows are seen by some processes and not by others,
// the same seed draws the same rows, and without --rows every process sees one row.
func TestRowsAreDrawnAnew(t *testing.T) {
	s := buildSampled(t)
	outcomes := map[bool]int{}
	said := map[string]bool{}
	for i := 0; i < 40 && (outcomes[true] == 0 || outcomes[false] < 2); i++ {
		seed := max(0, i-1) // the first twice
		records, _ := s.run(t, "check", "part", "--rows", "some=256", "--seed", fmt.Sprint(seed))
		passed, reasons := verdicts(records)
		outcomes[passed == 2]++
		if said[fmt.Sprint(passed, reasons)] = true; i == 1 && len(said) != 1 {
			t.Errorf("seed 0 gives %v", said)
		}
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("passed by seed: %v; the same rows each time", outcomes)
	}
	for _, more := range [][]string{nil, {"--rows", "some=4096"}, {"--rows", "some=5000"}} {
		records, _ := s.run(t, "check", "one_row", more...)
		if passed, reasons := verdicts(records); passed > 0 || !contains(reasons, "is above 0.0001") {
			t.Errorf("%q: %d classes passed, %q", more, passed, reasons)
		}
		want := map[string]string{"normal": "4096 of 4096", "not_finite": "4096 of 4096"}
		if more == nil {
			want = map[string]string{"normal": "<nil> of <nil>", "not_finite": "<nil> of <nil>"}
		}
		if got := compared(records); !maps.Equal(got, want) {
			t.Errorf("%q: compared %v", more, got)
		}
	}
}

// TestSampledKeepsNothing: of a case of which some rows are compared, nothing but its
// salt is kept, and each process draws inputs of its own.
func TestSampledKeepsNothing(t *testing.T) {
	s := buildSampled(t)
	for _, rows := range []string{"some=256", "some=4096"} {
		data, seeds := t.TempDir(), map[string]bool{}
		if records, code := run(t, s.program, "prepare", "--op", s.op, "--case", "some=G:8,S:512,D:4", "--data", data, "--rows", rows); code != 0 {
			t.Fatalf("prepare: %v", records)
		}
		files, err := os.ReadDir(filepath.Join(data, "some-8x512x4-rows"+strings.TrimPrefix(rows, "some=")))
		if err != nil || (len(files) == 1) != (rows == "some=256") {
			t.Errorf("--rows %s: %d files, %v", rows, len(files), err)
		}
		if len(files) != 1 {
			continue
		}
		for range 3 {
			records, _ := s.run(t, "check", "", "--data", data, "--rows", rows)
			for _, r := range records {
				if check, ok := r["check"]; ok && check["class"] == "normal" {
					seeds[fmt.Sprint(check["seed"])] = true
				}
			}
		}
		if len(seeds) != 3 {
			t.Errorf("--rows %s: %d of 3 processes had inputs of their own", rows, len(seeds))
		}
	}
}

// TestRowsNeedTheOp: an op that cannot compute rows is an error by name, and so is one
// that contradicts what it says of them.
func TestRowsNeedTheOp(t *testing.T) {
	for _, test := range []struct{ flag, rows, kind, says string }{
		{"-DWHOLE", "some=256", "op", "--rows: the op has no reference of rows (gate_rows_v1)"},
		{"-DDISAGREES", "some=256", "op", "a result of class normal is not finite, and every input is"},
		{"-DOUT_OF_RANGE", "some=256", "op", "a notable row of class normal is out of range"},
		{"-DNOTHING", "other=256", "usage", "--rows: no case is named other"},
		{"-DNOTHING", "some=23", "usage", "--rows: case some has 8 blocks, and 3 rows of each are the least"},
		{"-DNOTHING", "some=0", "usage", "--rows: 0 is not a number in range"},
		{"-DNOTHING", "some", "usage", "--rows: cannot read some"},
	} {
		t.Run(strings.TrimPrefix(test.flag, "-D")+" "+test.rows, func(t *testing.T) {
			s := buildSampled(t, test.flag)
			records, code := s.run(t, "check", "", "--rows", test.rows)
			kind, failure := errorKind(records)
			if message, _ := failure["message"].(string); code == 0 || kind != test.kind || !strings.Contains(message, test.says) {
				t.Errorf("exit %d, %v, want %s: %s", code, failure, test.kind, test.says)
			}
		})
	}
}
