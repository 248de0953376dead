package harness

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

const cheats = "../fixtures/cheats"

// A cheat is a folder of fixtures/cheats: a kernel, and what must become of it.
type cheat struct {
	name       string
	red        string   // the first tier that must be red; "" for one that passes
	says       []string // one of these is said then
	undetected bool
	pdl        bool
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

func readCheats(t *testing.T) []cheat {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cheats, "*", "fixture.yaml"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	var all []cheat
	undetected := 0
	for _, file := range files {
		c := cheat{name: filepath.Base(filepath.Dir(file))}
		lines := map[string]string{}
		for _, line := range strings.Split(read(t, file), "\n") {
			key, value, _ := strings.Cut(line, ": ")
			lines[key] = value
		}
		c.red = lines["red"]
		for _, m := range quoted.FindAllStringSubmatch(lines["says"], -1) {
			c.says = append(c.says, m[1])
		}
		c.undetected = lines["undetected"] != ""
		if c.undetected {
			undetected++
		}
		if lines["does"] == "" || (c.red == "") == (lines["passes"] == "" && !c.undetected) || (c.red != "") != (len(c.says) > 0) {
			t.Errorf("%s does not say what the kernel does and what must become of it", file)
		}
		c.pdl = strings.Contains(read(t, filepath.Join(filepath.Dir(file), "kernel.yaml")), "\npdl: true\n")
		all = append(all, c)
	}
	if undetected > 2 {
		t.Errorf("%d fixtures are undetected, and 2 may be", undetected)
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestCheats holds the harness to every fixture: on the stand-in for the CUDA
// runtime, and on a GPU where there is one.
func TestCheats(t *testing.T) {
	t.Run("standin", func(t *testing.T) {
		s := buildStandIn(t)
		for _, c := range readCheats(t) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				kernel := filepath.Join(t.TempDir(), "kernel.so")
				s.compile(t, kernel, "-shared", "-fPIC", "-fno-gnu-unique", "-x", "c++", filepath.Join(cheats, c.name, c.name+".cu"), "-L"+s.dir, "-lcudart")
				c.hold(t, s.program, s.op, kernel, "small=R:128,C:256", "--batches", "4", "--batch-us", "100", "--warmup-ms", "0")
			})
		}
	})
	t.Run("gpu", func(t *testing.T) {
		program := build(t)
		if records, code := run(t, program, "device"); code != 0 {
			t.Skipf("no device: %v", records[1]["error"]["message"])
		}
		op := filepath.Join(t.TempDir(), "rows.so")
		if out, err := exec.Command("g++", "-O3", "-shared", "-fPIC", "-std=c++17", "-I", ".", filepath.Join(cheats, "rows.cc"), "-o", op).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all := readCheats(t)
		// The compiler takes longer than the device, and one kernel at a time has the device.
		dir := t.TempDir()
		t.Run("compile", func(t *testing.T) {
			for _, c := range all {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					command := exec.Command(findCompiler(t), "-arch=native", "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC,-fno-gnu-unique", "-I", ".",
						filepath.Join(cheats, c.name, c.name+".cu"), "-o", filepath.Join(dir, c.name+".so"))
					if out, err := command.CombinedOutput(); err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
				})
			}
		})
		for _, c := range all {
			t.Run(c.name, func(t *testing.T) { c.hold(t, program, op, filepath.Join(dir, c.name+".so"), "small=R:128,C:256") })
		}
	})
}

// TestDeclared runs an op that works in place, whose results vary, and that needs a
// workspace. What is declared is needed: without it the same kernel is refused.
func TestDeclared(t *testing.T) {
	s := buildStandIn(t)
	op, kernel := filepath.Join(t.TempDir(), "op.so"), filepath.Join(t.TempDir(), "kernel.so")
	s.compile(t, op, "-shared", "-fPIC", "testdata/declared/add.cc")
	s.compile(t, kernel, "-shared", "-fPIC", "-x", "c++", "testdata/declared/add.cu", "-L"+s.dir, "-lcudart")
	common := []string{"--op", op, "--case", "some=N:1000", "--kernel", "k=" + kernel, "--run", "k@some", "--alignment", "16"}
	declared := append(common, "--tolerance", "relative_error=1e-4,max_abs_error=1,between_runs=1e-5", "--varies", "--inout", "x", "--workspace", "4096")
	for mode, more := range map[string][]string{"check": nil, "time": {"--batches", "4", "--batch-us", "100", "--warmup-ms", "0"}} {
		records, code := run(t, s.program, append(append([]string{mode}, declared...), more...)...)
		checkFrame(t, records, code)
		if passed, reasons := verdicts(records); code != 0 || len(reasons) > 0 || (passed == 1) != (mode == "check") {
			t.Errorf("%s: exit %d, %d passed, %q, %v", mode, code, passed, reasons, records[len(records)-2])
		}
	}
	records, code := run(t, s.program, append([]string{"check", "--tolerance", "relative_error=1e-4"}, common...)...)
	if kind, failure := errorKind(records); code != 1 || kind != "unsupported" {
		t.Errorf("undeclared: exit %d, %v", code, failure)
	}
}

// TestCallsAreThoseAskedFor: a batch holds as many calls as gate asks for, in
// each state of the caches by itself.
func TestCallsAreThoseAskedFor(t *testing.T) {
	s := buildStandIn(t)
	kernel := filepath.Join(t.TempDir(), "kernel.so")
	s.compile(t, kernel, "-shared", "-fPIC", "-fno-gnu-unique", "-x", "c++", filepath.Join(cheats, "honest", "honest.cu"), "-L"+s.dir, "-lcudart")
	common := []string{"time", "--op", s.op, "--tolerance", "relative_error=1e-4", "--exact", "largest", "--case", "small=R:128,C:256", "--kernel", "op/k:sm_90=" + kernel,
		"--run", "op/k:sm_90@small", "--batches", "4", "--batch-us", "100", "--warmup-ms", "0"}
	for _, test := range []struct {
		args []string
		want map[string]float64
	}{
		{[]string{"--calls", "op/k:sm_90@small/warm=24", "--calls", "op/k:sm_90@small/cold=7"}, map[string]float64{"warm": 24, "cold": 7}},
		{[]string{"--calls", "op/k:sm_90@small/warm=12", "--regimes", "warm"}, map[string]float64{"warm": 12}},
	} {
		records, code := run(t, s.program, append(slices.Clone(common), test.args...)...)
		checkFrame(t, records, code)
		got := map[string]float64{}
		for _, r := range records {
			if time, ok := r["time"]; ok {
				got[time["regime"].(string)] = time["calls"].(float64)
			}
		}
		if !maps.Equal(got, test.want) {
			t.Errorf("%q: %v calls, want %v", test.args, got, test.want)
		}
	}
}

// TestSkippedTwice: a result that differs once when the calls on a set are switched
// off is tried again; one that differs both times is refused, and the message says
// how much differs, and where.
func TestSkippedTwice(t *testing.T) {
	s := buildStandIn(t)
	for times, want := range map[string]string{
		"0": "",
		"1": "",
		"2": "others gave other results, twice: they live on its work (1 words differ, the first of them on set 1)",
	} {
		kernel := filepath.Join(t.TempDir(), "kernel.so")
		s.compile(t, kernel, "-shared", "-fPIC", "-fno-gnu-unique", "-DTIMES="+times, "-x", "c++", "testdata/notices.cu", "-L"+s.dir, "-lcudart")
		records, code := run(t, s.program, rowsArgs("check", s.op, kernel, "small=R:128,C:256")...)
		checkFrame(t, records, code)
		passed, reasons := verdicts(records)
		kind, failure := errorKind(records)
		message, _ := failure["message"].(string)
		if passed == 0 || len(reasons) > 0 || (kind == "not_alone") != (want != "") || !strings.Contains(message, want) {
			t.Errorf("%s times: %d passed, %q, error %v, want %q", times, passed, reasons, failure, want)
		}
		var notes bytes.Buffer
		again := exec.Command(s.program, rowsArgs("check", s.op, kernel, "small=R:128,C:256")...)
		again.Stderr = &notes
		_ = again.Run()
		if noted := strings.Contains(notes.String(), "; tried again"); noted != (times != "0") {
			t.Errorf("%s times: noted %q", times, notes.String())
		}
	}
}

// TestResultsOfAReference: a reference says where its results lie, which are judged as
// outputs are. No other kernel may, and a place that cannot hold a result is refused.
func TestResultsOfAReference(t *testing.T) {
	s := buildStandIn(t)
	for _, test := range []struct {
		result, flag string
		reason, says string // of the checks, and of the error; none where it is right
	}{
		{"right", "--reference", "", ""},
		{"stale", "--reference", "256 of 256 elements were not written", ""},
		{"shared", "--reference", "", "for output 0 lies where the result of another set still lies"},
		{"null", "--reference", "", "for output 0 is null"},
		{"host", "--reference", "", "for output 0 is not in the device's memory"},
		{"input", "--reference", "", "for output 0 is in the tensors of the harness, and not this output"},
		{"right", "--pdl", "", "k exports gate_result, as only a reference may"},
	} {
		kernel := filepath.Join(t.TempDir(), "kernel.so")
		s.compile(t, kernel, "-shared", "-fPIC", "-fno-gnu-unique", `-DRESULT="`+test.result+`"`, "-x", "c++", "testdata/allocates.cu", "-L"+s.dir, "-lcudart")
		for _, mode := range []string{"check", "time"} {
			args := append(rowsArgs(mode, s.op, kernel, "small=R:128,C:256"), test.flag, "k")
			if mode == "time" {
				args = append(args, "--batches", "4", "--batch-us", "100", "--warmup-ms", "0")
			}
			records, code := run(t, s.program, args...)
			checkFrame(t, records, code)
			kind, failure := errorKind(records)
			message, _ := failure["message"].(string)
			wantKind := map[bool]string{true: "symbol"}[test.says != ""]
			if mode == "time" && test.reason != "" {
				wantKind = "output_changed"
			}
			if kind != wantKind || !strings.Contains(message, test.says) {
				t.Errorf("%s, %s %s: error %v, want %q", test.result, mode, test.flag, failure, test.says)
			}
			passed, reasons := verdicts(records)
			if mode == "check" && ((passed > 0) != (test.reason+test.says == "") || (len(reasons) > 0) != (test.reason != "") || test.reason != "" && !contains(reasons, test.reason)) {
				t.Errorf("%s: %d passed, reasons %q, want %q", test.result, passed, reasons, test.reason)
			}
		}
	}
}

// TestColdIsConfirmed: a call by itself after a flush takes as long as in a cold batch,
// but for one that finds in the L2 what the call before it loaded.
func TestColdIsConfirmed(t *testing.T) {
	s := buildStandIn(t)
	for source, refused := range map[string]bool{filepath.Join(cheats, "honest", "honest.cu"): false, "testdata/prefetches_free.cu": true} {
		kernel := filepath.Join(t.TempDir(), "kernel.so")
		s.compile(t, kernel, "-shared", "-fPIC", "-fno-gnu-unique", "-x", "c++", source, "-L"+s.dir, "-lcudart")
		args := append(rowsArgs("time", s.op, kernel, "large=R:240,C:512"), "--batches", "4", "--batch-us", "400", "--warmup-ms", "0", "--regimes", "cold")
		records, code := run(t, s.program, args...)
		checkFrame(t, records, code)
		kind, failure := errorKind(records)
		message, _ := failure["message"].(string)
		if (kind == "unsteady") != refused || refused && !strings.Contains(message, "ns by themselves after a flush: the batches are not cold") {
			t.Errorf("%s: error %v", source, failure)
		}
		for _, r := range records {
			time, ok := r["time"]
			if !ok {
				continue
			}
			single, _ := time["single_ns"].(float64)
			batches, _ := time["batches_ns"].([]any)
			if batch, _ := batches[0].(float64); refused || single < 0.9*batch || single > 1.1*batch {
				t.Errorf("%s: %v ns by itself, %v ns in a batch", source, single, batch)
			}
		}
	}
}

// rowsArgs are the arguments for one kernel of the op rows, named k.
func rowsArgs(mode, op, kernel, shape string) []string {
	return []string{mode, "--op", op, "--tolerance", "relative_error=1e-4", "--exact", "largest", "--case", shape, "--kernel", "k=" + kernel,
		"--run", "k@" + shape[:strings.Index(shape, "=")]}
}

// TestPersistingLinesGainNothing: a kernel that asks for lines which stay in the L2 is
// as cold as one that does not.
func TestPersistingLinesGainNothing(t *testing.T) {
	s := buildStandIn(t)
	cold := map[string]string{}
	for _, name := range []string{"honest", "persists"} {
		kernel := filepath.Join(t.TempDir(), "kernel.so")
		s.compile(t, kernel, "-shared", "-fPIC", "-fno-gnu-unique", "-x", "c++", filepath.Join(cheats, name, name+".cu"), "-L"+s.dir, "-lcudart")
		records, code := run(t, s.program, "time", "--op", s.op, "--tolerance", "relative_error=1e-4", "--exact", "largest", "--case", "small=R:128,C:256",
			"--kernel", "k="+kernel, "--run", "k@small", "--regimes", "cold", "--calls", "k@small/cold=8", "--batches", "4", "--warmup-ms", "0")
		checkFrame(t, records, code)
		for _, r := range records {
			if time, ok := r["time"]; ok {
				cold[name] = fmt.Sprint(time["batches_ns"])
			}
		}
	}
	if cold["honest"] == "" || cold["honest"] != cold["persists"] {
		t.Errorf("batches in ns: %v", cold)
	}
}

// hold runs what gate would: the check, and the timing of what passes it.
func (c cheat) hold(t *testing.T, program, op, kernel, shape string, timing ...string) {
	t.Helper()
	tier, said := "", ""
	for _, mode := range []string{"check", "time"} {
		args := rowsArgs(mode, op, kernel, shape)
		if c.pdl {
			args = append(args, "--pdl", "k")
		}
		if mode == "time" {
			args = append(args, timing...)
		}
		records, code := run(t, program, args...)
		checkFrame(t, records, code)
		_, reasons := verdicts(records)
		if kind, failure := errorKind(records); kind != "" {
			reasons = append(reasons, fmt.Sprint(kind, ": ", failure["message"]))
		}
		if len(reasons) > 0 {
			tier, said = map[string]string{"check": "correctness", "time": "latency"}[mode], strings.Join(reasons, "\n")
			break
		}
	}
	if tier != c.red {
		t.Fatalf("the tier %q is red, want %q\n%s", tier, c.red, said)
	}
	for _, want := range c.says {
		if strings.Contains(said, want) {
			return
		}
	}
	if c.red != "" {
		t.Errorf("it says none of %q:\n%s", c.says, said)
	}
}

// A standIn is the harness's own sources, built by g++ on a stand-in for the CUDA
// runtime under the sanitizers.
type standIn struct{ dir, include, program, op string }

var standInOnce struct {
	sync.Once
	standIn
	err error
}

var sanitized = []string{"-std=c++17", "-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer",
	"-Wall", "-Wextra", "-Wconversion", "-Wno-unknown-pragmas", "-Werror"}

func buildStandIn(t *testing.T) *standIn {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the program under the sanitizers, which takes a minute")
	}
	toolkit := filepath.Dir(filepath.Dir(findCompiler(t))) // for its headers
	t.Setenv("ASAN_OPTIONS", "detect_leaks=0")             // the worker ends without a tidying up
	standInOnce.Do(func() { standInOnce.standIn, standInOnce.err = makeStandIn(toolkit) })
	if standInOnce.err != nil {
		t.Fatal(standInOnce.err)
	}
	return &standInOnce.standIn
}

func (s *standIn) flags() []string {
	return append(append([]string{}, sanitized...), "-I", "testdata/standin", "-I", ".", "-isystem", s.include)
}

func (s *standIn) compile(t *testing.T, out string, args ...string) {
	t.Helper()
	if err := gxx(append(append(s.flags(), args...), "-o", out)...); err != nil {
		t.Fatal(err)
	}
}

func gxx(args ...string) error {
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func makeStandIn(toolkit string) (standIn, error) {
	s := standIn{dir: filepath.Join(buildDir, "standin"), include: filepath.Join(toolkit, "include")}
	s.program, s.op = filepath.Join(s.dir, "gate-harness"), filepath.Join(s.dir, "rows.so")
	sources, err := filepath.Glob("*.cu")
	if err != nil || len(sources) < 10 {
		return s, fmt.Errorf("%d sources, %w", len(sources), err)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return s, err
	}
	jobs := [][]string{
		append(s.flags(), "-shared", "-fPIC", "testdata/standin/standin.cc", "-o", filepath.Join(s.dir, "libcudart.so")),
		append(s.flags(), "-shared", "-fPIC", filepath.Join(cheats, "rows.cc"), "-o", s.op),
	}
	var objects []string
	for _, source := range sources {
		if source == "clock.cu" { // the stand-in simulates time
			continue
		}
		object := filepath.Join(s.dir, source+".o")
		objects = append(objects, object)
		jobs = append(jobs, append(s.flags(), "-x", "c++", "-c", source, "-o", object))
	}
	if err := each(jobs, func(args []string) error { return gxx(args...) }); err != nil {
		return s, err
	}
	link := append(append(s.flags(), objects...), "-L"+s.dir, "-lcudart", "-Wl,-rpath,"+s.dir, "-ldl", "-lpthread", "-o", s.program)
	return s, gxx(link...)
}

// each does all jobs on every core.
func each(jobs [][]string, do func([]string) error) error {
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	errs := make(chan error, len(jobs))
	for _, job := range jobs {
		wait.Add(1)
		go func() {
			defer wait.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := do(job); err != nil {
				errs <- err
			}
		}()
	}
	wait.Wait()
	close(errs)
	return <-errs
}
