package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Not gate's toolchain package: these sources must not depend on the tool.
func findCompiler(t *testing.T) string {
	t.Helper()
	if home := os.Getenv("CUDA_HOME"); home != "" {
		return filepath.Join(home, "bin", "nvcc")
	}
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		t.Skip("no nvcc: neither CUDA_HOME nor PATH names one")
	}
	return nvcc
}

func TestProgramSpeaksThisProtocol(t *testing.T) {
	source, err := Files.ReadFile("main.cu")
	if err != nil {
		t.Fatal(err)
	}
	if want := `kProtocol[] = "` + Protocol + `"`; !bytes.Contains(source, []byte(want)) {
		t.Errorf("main.cu does not hold %s", want)
	}
}

func TestFilesHoldEverySource(t *testing.T) {
	var want []string
	for _, pattern := range []string{"*.h", "*.cu"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		want = append(want, names...)
	}
	entries, err := Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("embedded %v, in the folder %v", got, want)
	}
}

// An op or a kernel may be written in C, with no CUDA header in sight.
func TestHeaderIsC99(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc")
	}
	out, err := exec.Command(cc, "-std=c99", "-pedantic-errors", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", "gate.h").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The inputs and the reference decide what is correct, so they are held to laws
// of their own.
func TestAttentionLaws(t *testing.T) {
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++")
	}
	program := filepath.Join(t.TempDir(), "laws")
	out, err := exec.Command(cxx, "-O2", "-Wall", "-Wextra", "-Werror", "-std=c++17", "-I", ".",
		"testdata/attention_laws.cc", "-o", program, "-lpthread").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err = exec.Command(program).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(" 0 broken")) || bytes.Count(out, []byte("ok   ")) < 30 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gate-harness")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var (
	buildDir  string
	buildOnce sync.Once
	buildErr  error
)

// build compiles the program from the embedded files, as gate does, once.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the program, which takes seconds")
	}
	nvcc := findCompiler(t)
	program := filepath.Join(buildDir, "gate-harness")
	buildOnce.Do(func() { buildErr = compile(nvcc, program) })
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return program
}

func compile(nvcc, program string) error {
	sources := filepath.Join(buildDir, "src")
	if err := os.CopyFS(sources, Files); err != nil {
		return err
	}
	args := []string{"-O2", "-std=c++17", "-arch=sm_90", "-I", sources}
	units, err := filepath.Glob(filepath.Join(sources, "*.cu"))
	if err != nil || len(units) == 0 {
		return fmt.Errorf("%d sources: %w", len(units), err)
	}
	args = append(append(args, units...), "-o", program, "-ldl", "-lpthread")
	if out, err := exec.Command(nvcc, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// A record is one line: one key that says what it is.
type record map[string]map[string]any

func run(t *testing.T, program string, args ...string) (records []record, code int) {
	t.Helper()
	return runWith(t, "", program, args...)
}

// runWith gives the program this standard input.
func runWith(t *testing.T, in, program string, args ...string) (records []record, code int) {
	t.Helper()
	command := exec.Command(program, args...)
	command.Stdin = strings.NewReader(in)
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return parse(t, out), code
}

func parse(t *testing.T, out []byte) (records []record) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil || len(r) != 1 {
			t.Fatalf("%q is not one record: %v", line, err)
		}
		records = append(records, r)
	}
	return records
}

// checkFrame holds a stream to what is true of every one: the configuration
// first, the counts last, and errors that are counted and exit with a code.
func checkFrame(t *testing.T, records []record, code int) {
	t.Helper()
	if len(records) < 2 {
		t.Fatalf("%d records", len(records))
	}
	if got := records[0]["config"]["protocol"]; got != Protocol {
		t.Errorf("first record: protocol %v", got)
	}
	failures := 0.0
	for _, r := range records {
		if _, ok := r["error"]; ok {
			failures++
		}
	}
	end, ok := records[len(records)-1]["end"]
	if !ok || end["error"] != failures {
		t.Errorf("last record %v, want an end that counts %v errors", records[len(records)-1], failures)
	}
	if (code != 0) != (failures > 0) {
		t.Errorf("exit %d with %v errors", code, failures)
	}
}

func TestProgramUsage(t *testing.T) {
	program := build(t)
	check := []string{"check", "--op", "op.so", "--tolerance", "relative_error=1e-3"}
	shape, kernel := []string{"--case", "m=B:1"}, []string{"--kernel", "k=k.so"}
	long := "--" + strings.Repeat("x", 300_000) // more than Linux takes as one argument
	tests := []struct {
		name string
		args []string
		want string // a part of the message
	}{
		{"nothing", nil, "no mode is given"},
		{"unknown mode", []string{"bench"}, "and not bench"},
		{"unknown flag", []string{"device", "--fast", "1"}, "unknown flag: --fast"},
		{"no value", []string{"device", "--seed"}, "--seed"},
		{"twice", []string{"device", "--seed", "1", "--seed", "2"}, "--seed is given twice"},
		{"negative seed", []string{"device", "--seed", "-1"}, "-1 is not a number in range"},
		{"trailing text", []string{"device", "--batches", "8x"}, "8x is not a number in range"},
		{"nan", []string{"device", "--batch-us", "nan"}, "nan is not a number in range"},
		{"unknown regime", []string{"device", "--regimes", "warm,hot"}, "hot is neither warm nor cold"},
		{"regime twice", []string{"device", "--regimes", "warm,warm"}, "a regime is given twice"},
		{"no op", []string{"check"}, "check needs --op"},
		{"no run", check, "check needs at least one --run"},
		{"no tolerance", slices.Concat([]string{"check", "--op", "op.so"}, shape, kernel, []string{"--run", "k@m"}), "check needs --tolerance"},
		{"zero tolerance", []string{"check", "--tolerance", "relative_error=0"}, "must be above 0"},
		{"nan tolerance", []string{"check", "--tolerance", "relative_error=nan"}, "nan is not a number in range"},
		{"other metric", []string{"check", "--tolerance", "abs=1"}, "abs is none of relative_error, max_abs_error and between_runs"},
		{"negative error", []string{"check", "--tolerance", "max_abs_error=-1"}, "-1 is not a number in range"},
		{"nothing to prepare", []string{"prepare", "--op", "op.so"}, "prepare needs --data"},
		{"unknown case", slices.Concat(check, shape, kernel, []string{"--run", "k@n"}), "nothing is named n"},
		{"unknown kernel", slices.Concat(check, shape, kernel, []string{"--run", "j@m"}), "nothing is named j"},
		{"case twice", slices.Concat(check, shape, shape, kernel, []string{"--run", "k@m"}), "two are named m"},
		{"dim twice", []string{"check", "--case", "m=B:1,B:2"}, "m gives B twice"},
		{"dim of zero", []string{"check", "--case", "m=B:0"}, "0 is not a number in range"},
		{"a case profiled twice", slices.Concat([]string{"profile", "--op", "op.so"}, shape, kernel, []string{"--run", "k@m", "--run", "k@m"}), "a case may be given once"},
		{"two kernels profiled", slices.Concat([]string{"profile", "--op", "op.so"}, shape, kernel, []string{"--kernel", "j=j.so", "--case", "n=B:2", "--run", "k@m", "--run", "j@n"}), "every --run has to name one and the same kernel"},
		{"nothing profiled", slices.Concat([]string{"profile", "--op", "op.so"}, shape, kernel), "profile needs at least one --run"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			records, code := run(t, program, test.args...)
			checkFrame(t, records, code)
			if code != 2 || len(records) != 3 {
				t.Fatalf("exit %d, %d records", code, len(records))
			}
			failure := records[1]["error"]
			if message, _ := failure["message"].(string); failure["kind"] != "usage" || !strings.Contains(message, test.want) {
				t.Errorf("%v, want usage: %s", failure, test.want)
			}
		})
	}
	for in, want := range map[string]string{
		"":                                "no mode is given",
		"device\x00--seed\x001":           "standard input ends within an argument",
		"device\x00--fast\n\x001\x00":     "unknown flag: --fast\n",
		"device\x00--run\x00\x00":         "--run: cannot read ",
		"-\x00":                           "and not -",
		"device\x00" + long + "\x001\x00": "unknown flag: " + long,
	} {
		records, code := runWith(t, in, program, "-")
		checkFrame(t, records, code)
		if message, _ := records[1]["error"]["message"].(string); code != 2 || len(records) != 3 || !strings.Contains(message, want) {
			t.Errorf("%.40q: exit %d, %.100v, want %.40s", in, code, records[1], want)
		}
	}
	t.Run("device", func(t *testing.T) {
		records, code := run(t, program, "device")
		checkFrame(t, records, code)
		if found := records[0]["config"]["device"] != nil; found != (code == 0) {
			t.Errorf("exit %d with device %v", code, records[0]["config"]["device"])
		}
	})
}
