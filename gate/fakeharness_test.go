package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kernelgate/gate/kernels/harness"
)

// A behaviour is how a kernel of a script acts on the simulated GPU. The fake
// programs read it from the kernel's shared object, so that it is bound to
// what was built: "FAKE latency=10000 error=2e-4". A name with a case is of that case alone:
// "latency@small=9000".
type behaviour map[string]string

const behaviourMark = "FAKE "

// behaviourOf reads the text after the mark, up to the zero byte that ends it.
func behaviourOf(library string) (behaviour, error) {
	data, err := os.ReadFile(library)
	if err != nil {
		return nil, err
	}
	_, rest, ok := bytes.Cut(data, []byte(behaviourMark))
	if !ok {
		return nil, fmt.Errorf("%s holds no %q", library, behaviourMark)
	}
	text, _, _ := bytes.Cut(rest, []byte{0})
	b := behaviour{}
	for _, pair := range strings.Fields(string(text)) {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("%s: %q is not NAME=VALUE", library, pair)
		}
		b[name] = value
	}
	return b, nil
}

// on is the behaviour on one case, which goes before that on all.
func (b behaviour) on(kase string) behaviour {
	out := maps.Clone(b)
	for name, value := range b {
		if name, of, there := strings.Cut(name, "@"); there && of == kase {
			out[name] = value
		}
	}
	return out
}

func (b behaviour) number(name string, otherwise float64) float64 {
	text, ok := b[name]
	if !ok {
		return otherwise
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return x
}

// A fakeStream is the harness's standard output: JSON lines with a count of
// what was sent in the last.
type fakeStream struct {
	sent map[string]int
}

func (s *fakeStream) send(kind string, body map[string]any) {
	line, err := json.Marshal(map[string]any{kind: body})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
	if kind != "config" && kind != "end" {
		s.sent[kind]++
	}
}

func (s *fakeStream) end(lie bool) {
	counts := map[string]any{}
	for _, kind := range []string{"peaks", "begin", "check", "time", "profile", "absent", "error"} {
		counts[kind] = s.sent[kind]
	}
	if lie {
		counts["begin"] = s.sent["begin"] + 1
	}
	s.send("end", counts)
}

// fakeHarness speaks as kernels/harness's program does.
func fakeHarness(args []string) int {
	if slices.Equal(args, []string{"-"}) {
		text, err := io.ReadAll(os.Stdin)
		if err != nil || !bytes.HasSuffix(text, []byte{0}) {
			return failed(fmt.Errorf("standard input holds no arguments: %q, %w", text, err))
		}
		args = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	note("harness " + args[0])
	noteIn(".gpus", fmt.Sprint(os.Getenv("CUDA_VISIBLE_DEVICES"), " ", args))
	if took, err := time.ParseDuration(os.Getenv("FAKE_TOOK")); err == nil {
		time.Sleep(took) // what the GPU would take
	}
	for _, name := range []string{"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "ACTIONS_ID_TOKEN_REQUEST_URL"} {
		if os.Getenv(name) != "" {
			note("the harness sees " + name)
		}
	}
	flags := map[string][]string{}
	for i := 1; i < len(args); i++ {
		if args[i] == "--varies" {
			continue
		}
		flags[args[i]] = append(flags[args[i]], args[i+1])
		i++
	}
	seed := "1"
	if s := flags["--seed"]; len(s) > 0 {
		seed = s[0]
	}
	s := &fakeStream{sent: map[string]int{}}
	s.send("config", map[string]any{"protocol": harness.Protocol, "mode": args[0], "seed": json.Number(seed), "device": fakeDevice()})
	if args[0] == "prepare" {
		name, dims, _ := strings.Cut(flags["--case"][0], "=")
		for i, d := range strings.Split(dims, ",") {
			_, size, _ := strings.Cut(d, ":")
			name += []string{"-", "x"}[min(i, 1)] + size
		}
		if err := os.Mkdir(filepath.Join(flags["--data"][0], name), 0o755); err != nil {
			return failed(err)
		}
		s.end(false)
		return 0
	}
	if args[0] == "device" {
		if os.Getenv("FAKE_DEVICE") == "dead" {
			s.send("error", map[string]any{"kernel": nil, "case": nil, "kind": "cuda", "code": 46, "name": "cudaErrorDevicesUnavailable", "message": "creating a context: the device is busy"})
			s.end(false)
			return 1
		}
		s.end(false)
		return 0
	}
	if args[0] == "time" {
		s.send("peaks", fakePeaks())
	}
	status, lie := 0, false
	for _, run := range flags["--run"] {
		u, err := newFakeRun(run, args[0], seed, flags["--kernel"])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		if asked := flags["--regimes"]; len(asked) > 0 {
			u.regimes = strings.Split(asked[0], ",")
		}
		u.calls = flags["--calls"]
		lie = lie || u.is("lie")
		if !u.perform(s) {
			status = 1
			if u.is("cuda") {
				break // the context is lost
			}
		}
		if u.is("exit") {
			fmt.Fprintln(os.Stderr, "the program gave up")
			return 7
		}
	}
	s.end(lie)
	return status
}

func fakeDevice() map[string]any {
	return map[string]any{"name": os.Getenv("FAKE_GPU_NAME"), "l2_bytes": 62914560}
}

// fakePeaks are about those of an H200, whatever the card is called. Of the arithmetic
// that FAKE_NO_PEAK names none is known.
func fakePeaks() map[string]any {
	flops, absent := map[string]any{}, map[string]any{}
	for unit, rate := range map[string]float64{"f64": 66_000, "f32": 66_000, "tf32": 530_000, "f16": 1_070_000, "bf16": 1_070_000, "f8": 2_140_000, "i8": 2_140_000} {
		if unit == os.Getenv("FAKE_NO_PEAK") {
			absent[unit] = "no instruction that the harness has for this card is known to reach the peak of " + unit
		} else {
			flops[unit] = rate
		}
	}
	return map[string]any{"cold_bytes_per_ns": map[string]any{"read": 4400, "write": 4000, "copy": 4200},
		"warm_bytes_per_ns": map[string]any{"read": 6600, "write": 5000, "copy": 6000}, "flops_per_ns": flops, "absent": absent, "sm_mhz": map[string]any{}}
}

// A fakeRun is one kernel on one case.
type fakeRun struct {
	kernel, kase, mode, seed string
	library                  string
	regimes, calls           []string
	behaviour                behaviour
}

func newFakeRun(run, mode, seed string, kernels []string) (*fakeRun, error) {
	at := strings.LastIndex(run, "@")
	u := &fakeRun{kernel: run[:at], kase: run[at+1:], mode: mode, seed: seed, regimes: []string{"warm", "cold"}}
	i := slices.IndexFunc(kernels, func(k string) bool { return strings.HasPrefix(k, u.kernel+"=") })
	if i < 0 {
		return nil, fmt.Errorf("no --kernel for %s", run)
	}
	u.library = strings.TrimPrefix(kernels[i], u.kernel+"=")
	b, err := behaviourOf(u.library)
	u.behaviour = b.on(u.kase)
	return u, err
}

// is reports whether a behaviour was asked for in this mode: "hang=check".
func (u *fakeRun) is(name string) bool { return u.behaviour[name] == u.mode }

func (u *fakeRun) record(more map[string]any) map[string]any {
	r := map[string]any{"kernel": u.kernel, "case": u.kase}
	for k, v := range more {
		r[k] = v
	}
	return r
}

// perform sends what the kernel's behaviour makes of a run; false is an error.
func (u *fakeRun) perform(s *fakeStream) bool {
	switch u.mode {
	case "check":
		for _, class := range []string{"ordinary", "large"} {
			s.send("begin", u.record(map[string]any{"class": class}))
			if !u.launch(s) {
				return false
			}
			u.result(s, "check", class == "large", u.check(class))
			if u.is("truncate") {
				os.Exit(0) // the stream stops without a word
			}
		}
	case "time":
		for i, regime := range u.regimes {
			s.send("begin", u.record(map[string]any{"regime": regime}))
			if !u.launch(s) {
				return false
			}
			if u.behaviour["large"] == regime {
				s.send("absent", u.record(map[string]any{"regime": regime, "reason": "the tensors of one call are too large for it"}))
				continue
			}
			u.result(s, "time", i == len(u.regimes)-1, u.time(regime))
			if u.is("truncate") {
				os.Exit(0)
			}
		}
	case "profile":
		s.send("begin", u.record(nil))
		if !u.launch(s) {
			return false
		}
		// The simulated ncu sees grids of 32 blocks, whatever was "captured".
		one := map[string]any{"grid": []float64{u.behaviour.number("captured", 32), 1, 1}, "block": []float64{u.behaviour.number("block", 128), 1, 1}}
		launches := slices.Repeat([]any{one}, int(u.behaviour.number("launches", 1)))
		s.send("profile", u.record(map[string]any{"calls": 1, "kernel_nodes": len(launches), "launches": launches}))
	}
	return true
}

// result sends a result, but a kernel may send its last one twice or not at all.
func (u *fakeRun) result(s *fakeStream, kind string, last bool, body map[string]any) {
	if !(last && u.is("omit")) {
		s.send(kind, body)
	}
	if last && u.is("double") {
		s.send(kind, body)
	}
}

// launch is the moment at which a kernel hangs, crashes or fails.
func (u *fakeRun) launch(s *fakeStream) bool {
	switch {
	case u.is("hang"):
		if u.behaviour["brood"] != "" {
			child := exec.Command("sleep", "600")
			child.Stdout = os.Stdout // holds the stream open
			if child.Start() == nil {
				noteIn(".hangs", strconv.Itoa(child.Process.Pid))
			}
		}
		noteIn(".hangs", strconv.Itoa(os.Getpid()))
		time.Sleep(10 * time.Minute)
	case u.is("crash"), u.is("frail") && os.Getenv("FAKE_FRAIL") != "":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case u.is("cuda"):
		s.send("error", u.record(map[string]any{"kind": "cuda", "code": 700, "name": "cudaErrorIllegalAddress", "message": "running the kernel: an illegal memory access was encountered"}))
		return false
	case u.is("empty"):
		s.send("error", u.record(map[string]any{"kind": "empty_graph", "code": 0, "name": "", "message": "16 captured calls gave 0 kernel launches"}))
		return false
	}
	return true
}

const fakeElements = 4096

func (u *fakeRun) check(class string) map[string]any {
	r := u.record(map[string]any{"class": class, "elements": fakeElements, "max_abs_index": 0, "nonfinite": 0, "unwritten": 0,
		"guard": "ok", "inputs_changed": false, "repeatable": true, "status": "pass", "reasons": []string{}})
	e := u.behaviour.number("error", 2e-4)
	r["relative_error"], r["max_abs_error"] = e, 2*e
	if nan := u.behaviour.number("nan", 0); nan > 0 {
		r["relative_error"], r["max_abs_error"], r["nonfinite"], r["status"] = nil, nil, nan, "fail"
		r["reasons"] = []string{fmt.Sprintf("%g of %d elements are not finite where the reference is, or finite where it is not", nan, fakeElements)}
	} else if e > 1e-3 {
		r["status"], r["reasons"] = "fail", []string{fmt.Sprintf("relative error %.3g is above 0.001", e)}
	}
	return r
}

// time is one launch: every batch has a little noise, and so has the launch.
// The same seed gives the same times.
func (u *fakeRun) time(regime string) map[string]any {
	h := fnv.New64a()
	fmt.Fprint(h, u.seed, u.kernel, u.kase, regime)
	random := rand.New(rand.NewPCG(h.Sum64(), 1))
	noise := u.behaviour.number("noise", 0.001)
	typical := u.behaviour.number("latency", 10000) * (1 + noise*(random.Float64()-0.5)) * u.sway(regime)
	if regime == "cold" {
		typical *= 1.5
	}
	batches := make([]float64, 50)
	for i := range batches {
		batches[i] = math.Round(typical*(1+noise*random.Float64())*1e3) / 1e3
	}
	batches[0] *= 1 + u.behaviour.number("tail", 0)
	calls := 16
	for _, asked := range u.calls {
		if n, ok := strings.CutPrefix(asked, u.kernel+"@"+u.kase+"/"+regime+"="); ok {
			calls, _ = strconv.Atoi(n)
		}
	}
	nodes := calls
	if u.is("unlaunched") {
		nodes = 0
	}
	state := map[string]any{"sm_mhz": 1980, "mem_mhz": 3201, "temperature_c": 35, "power_w": 300, "throttle": throttled(), "throttle_bits": 0}
	return u.record(map[string]any{"regime": regime, "calls": calls, "kernel_nodes": nodes, "sets": 16,
		"batches_ns": batches, "before": state, "after": state})
}

// throttled is why the device holds down its clocks: from the process on that FAKE_HOT
// numbers, among those that time, it is too hot.
func throttled() []string {
	hot, err := strconv.Atoi(os.Getenv("FAKE_HOT"))
	if err != nil {
		return []string{}
	}
	log, err := os.ReadFile(os.Getenv("FAKE_LOG"))
	if err != nil {
		panic("FAKE_HOT needs FAKE_LOG")
	}
	if bytes.Count(log, []byte("harness time\n")) < hot {
		return []string{}
	}
	return []string{"hw_thermal"}
}

// sway makes launch after launch of one library wander through a range, the
// same way for base and head: noise that nothing can be proven in, whatever
// the order of the launches.
func (u *fakeRun) sway(regime string) float64 {
	width := u.behaviour.number("sway", 0)
	if width == 0 {
		return 1
	}
	h := fnv.New64a()
	fmt.Fprint(h, u.library, u.kase, regime)
	suffix := fmt.Sprintf(".launches-%x", h.Sum64())
	noteIn(suffix, "launch")
	log, err := os.ReadFile(os.Getenv("FAKE_LOG") + suffix)
	if err != nil {
		panic("sway needs FAKE_LOG")
	}
	return 1 + width*float64(bytes.Count(log, []byte("\n"))*5%8)/8
}
