package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	banner = "Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n"
	uuid   = "GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f"
	smiRow = "0, " + uuid + ", NVIDIA H200, 580.159.03, 00000000:0F:00.0, 9.0, Disabled, Enabled, 700.00, 77.00, 30, 345, 3201, 1980, 3201, 143771, 0, 0, 0x0000000000000001\n"
)

const goodPolicy = `version: 1
kernels: kernels/**/kernel.yaml
store: store
rules: [{id: spills, metric: ptxas.spill_bytes, limit: 0}]
`

// A machine is a folder of fake programs and files.
type machine struct {
	t   *testing.T
	dir string
}

// newMachine has everything and does it well.
func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t, t.TempDir()}
	for name, text := range map[string]string{
		"cuda/bin/nvcc": banner, "cuda/bin/ptxas": banner, "cuda/bin/cuobjdump": banner,
		"bin/g++": "g++ (Debian 12.2.0-14+deb12u1) 12.2.0\n",
		"bin/ncu": "Version 2025.3.1.0 (build 36398880) (public-release)\n", "bin/compute-sanitizer": "Version 2025.3.1.0 (build 36398880)\n",
		"bin/python3": "Python 3.11.2\n",
	} {
		m.program(name, "cat <<'EOF'\n"+text+"EOF\n")
	}
	m.program("bin/git", "[ \"$1\" != --version ] && exec /usr/bin/git \"$@\"\necho git version 2.39.5\n")
	m.smi(smiRow, uuid+", 4711, /opt/other, job, 512\n")
	m.write("policies.yaml", goodPolicy, 0o644)
	m.write("store/evidence.json", "{}", 0o644)
	return m
}

func (m machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m machine) write(name, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) program(name, body string) { m.t.Helper(); m.write(name, "#!/bin/sh\n"+body, 0o755) }

func (m machine) remove(name string) {
	m.t.Helper()
	if err := os.RemoveAll(m.path(name)); err != nil {
		m.t.Fatal(err)
	}
}

// smi makes an nvidia-smi that prints these tables.
func (m machine) smi(gpus, processes string) {
	m.t.Helper()
	m.write("gpus", gpus, 0o644)
	m.write("processes", processes, 0o644)
	m.program("bin/nvidia-smi", fmt.Sprintf("case \"$1\" in\n--query-gpu=*) exec cat %q ;;\n*) exec cat %q ;;\nesac\n", m.path("gpus"), m.path("processes")))
}

// examine runs the doctor on this machine alone. The shell's own tools stay
// on the process's PATH, and off the one that is examined.
func (m machine) examine(change func(*Options)) Report {
	m.t.Helper()
	m.t.Setenv("PATH", m.path("bin")+":/usr/bin:/bin")
	m.t.Setenv(gpu.EnvNVML, "off")
	o := Options{
		Env: func(name string) string {
			return map[string]string{"PATH": m.path("bin"), "CUDA_HOME": m.path("cuda")}[name]
		},
		Dir: m.dir, CacheDir: m.path("cache"), Policy: m.path("policies.yaml"), LockDir: m.path("locks"),
	}
	if change != nil {
		change(&o)
	}
	return Examine(context.Background(), o)
}

func find(t *testing.T, r Report, name string) check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check is named %q", name)
	return check{}
}

func TestEverythingIsHere(t *testing.T) {
	m := newMachine(t)
	r := m.examine(nil)
	for _, c := range r.Checks {
		if c.Name == "performance counters" || c.Name == "confinement" {
			continue // the kernel's files and calls cannot be faked from here
		}
		if c.Status != fine || c.Without != "" || c.Fix != "" || c.Detail == "" {
			t.Errorf("%+v", c)
		}
	}
	if len(r.Checks) != 15 || !r.Ready() {
		t.Errorf("%d checks, want 15; ready: %v", len(r.Checks), r.Ready())
	}
	if len(r.GPUs) != 1 || r.GPUs[0].Status != fine || len(r.GPUs[0].Processes) != 1 || r.GPUs[0].Processes[0].Name != "/opt/other, job" || r.GPUs[0].LockedBy != "" {
		t.Errorf("GPUs: %+v", r.GPUs)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	for _, c := range []struct {
		name, check string
		status      state
		detail      string // in it
		fix         string // in it
		ready       bool
		damage      func(machine) func(*Options)
	}{
		{"no nvcc", "nvcc", missing, "no CUDA compiler", "", false, func(m machine) func(*Options) {
			return func(o *Options) { o.Env = func(n string) string { return map[string]string{"PATH": m.path("bin")}[n] } }
		}},
		{"CUDA_HOME is wrong", "nvcc", broken, "/nowhere/bin/nvcc", "CUDA_HOME", false, func(m machine) func(*Options) {
			return func(o *Options) {
				o.Env = func(n string) string {
					return map[string]string{"PATH": m.path("bin"), "CUDA_HOME": "/nowhere"}[n]
				}
			}
		}},
		{"no ptxas", "ptxas", broken, "", "comes with nvcc", false, func(m machine) func(*Options) { m.remove("cuda/bin/ptxas"); return nil }},
		{"no cuobjdump", "cuobjdump", missing, "", "cuda-cuobjdump-13-0", true, func(m machine) func(*Options) { m.remove("cuda/bin/cuobjdump"); return nil }},
		{"no host compiler", "host compiler", missing, "", "apt-get install g++", false, func(m machine) func(*Options) { m.remove("bin/g++"); return nil }},
		{"host compiler fails", "host compiler", broken, "exit status 1", "apt-get install g++", false, func(m machine) func(*Options) { m.program("bin/g++", "exit 1"); return nil }},
		{"ncu fails", "ncu", broken, "boom", "nsight-compute-13-0", true, func(m machine) func(*Options) { m.program("bin/ncu", "echo boom; exit 1"); return nil }},
		{"ncu is another program", "ncu", broken, "no line", "nsight-compute-13-0", true, func(m machine) func(*Options) { m.program("bin/ncu", "echo NeXT cube utility"); return nil }},
		{"driver does not answer", "driver", missing, "couldn't communicate", "nvidia-open", true, func(m machine) func(*Options) {
			m.program("bin/nvidia-smi", "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9")
			return nil
		}},
		{"GPU lost", "driver", broken, "GPU is lost", "Xid", true, func(m machine) func(*Options) {
			m.program("bin/nvidia-smi", "echo 'Unable to determine the device handle for GPU0: GPU is lost.' >&2; exit 15")
			return nil
		}},
		{"driver too old", "driver", broken, "older than 580", "nvidia-open", true, func(m machine) func(*Options) {
			m.smi(strings.ReplaceAll(smiRow, "580.159.03", "570.86.10"), "")
			return nil
		}},
		{"no policy", "policy", missing, "does not exist", "gate schema metrics", true, func(m machine) func(*Options) { m.remove("policies.yaml"); return nil }},
		{"policy is wrong", "policy", broken, `policies.yaml:2: unknown key "kernel"`, "correct", true, func(m machine) func(*Options) {
			m.write("policies.yaml", strings.Replace(goodPolicy, "kernels:", "kernel:", 1), 0o644)
			return nil
		}},
		{"the store of a policy that is wrong", "store", unknown, "cannot be read", "", true, func(m machine) func(*Options) {
			m.write("policies.yaml", "version: 1\n", 0o644)
			return nil
		}},
		{"policy is a folder", "policy", broken, "is not a file", "", true, func(m machine) func(*Options) { return func(o *Options) { o.Policy = m.path("store") } }},
		{"no store", "store", missing, "does not exist", "gate baseline record", true, func(m machine) func(*Options) { m.remove("store"); return nil }},
		{"store is empty", "store", missing, "is empty", "gate baseline record", true, func(m machine) func(*Options) { m.remove("store/evidence.json"); return nil }},
		{"store is a file", "store", broken, "", "", true, func(m machine) func(*Options) { return func(o *Options) { o.Store = "policies.yaml" } }},
		{"cache cannot be made", "cache", broken, "", "GATE_CACHE", true, func(m machine) func(*Options) {
			return func(o *Options) { o.CacheDir = m.path("bin/g++/cache") }
		}},
		{"no git", "git", missing, "", "apt-get install git", true, func(m machine) func(*Options) { m.remove("bin/git"); return nil }},
		{"no python", "python3", missing, "", "python3-pip", true, func(m machine) func(*Options) { m.remove("bin/python3"); return nil }},
		{"no pip", "pip", missing, "No module named pip", "python3-pip", true, func(m machine) func(*Options) {
			m.program("bin/python3", "[ \"$1\" = --version ] || { echo No module named pip; exit 1; }; echo Python 3")
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			r := m.examine(c.damage(m))
			got := find(t, r, c.check)
			if got.Status != c.status || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Fix, c.fix) {
				t.Errorf("got %+v", got)
			}
			if got.Without == "" || got.Fix == "" {
				t.Errorf("no advice: %+v", got)
			}
			if strings.Contains(got.Detail, "secret") {
				t.Errorf("a password is shown: %s", got.Detail)
			}
			if r.Ready() != c.ready {
				t.Errorf("ready: %v", r.Ready())
			}
		})
	}
}

func TestLockHolderIsShown(t *testing.T) {
	m := newMachine(t)
	l, err := gpu.AcquireIn(context.Background(), m.path("locks"), uuid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	r := m.examine(nil)
	if want := fmt.Sprintf("process %d ", os.Getpid()); !strings.HasPrefix(r.GPUs[0].LockedBy, want) {
		t.Errorf("locked by %q, want %q", r.GPUs[0].LockedBy, want)
	}
}

func TestProcessesNotTold(t *testing.T) {
	m := newMachine(t)
	m.program("bin/nvidia-smi", fmt.Sprintf("case \"$1\" in\n--query-gpu=*) exec cat %q ;;\nesac\nexit 1\n", m.path("gpus")))
	r := m.examine(nil)
	if r.GPUs[0].UsersKnown || r.GPUs[0].users() != "not told by the driver" {
		t.Errorf("%+v", r.GPUs[0])
	}
}

func TestCounters(t *testing.T) {
	for _, c := range []struct {
		allowed, known bool
		want           state
	}{{true, true, fine}, {false, true, missing}, {false, false, unknown}} {
		got := counters(c.allowed, c.known)
		if got.Status != c.want || !strings.Contains(got.Without, "ERR_NVGPUCTRPERM") {
			t.Errorf("%v: %+v", c, got)
		}
	}
}

func TestDriverAge(t *testing.T) {
	for _, c := range []struct {
		cuda, driver string
		old          bool
	}{
		{"13.0.88", "580.65.06", false}, {"13.0.88", "575.57.08", true}, {"13.9.1", "600.1", false},
		{"12.4.131", "525.60.13", false}, {"12.4.131", "515.1", true}, {"11.8.89", "450.80", false}, {"13.0.88", "odd", false},
	} {
		if got := tooOld(&toolchain.Toolchain{Version: c.cuda}, c.driver); (got != "") != c.old {
			t.Errorf("CUDA %s, driver %s: %q", c.cuda, c.driver, got)
		}
	}
}

// sample has every kind of line and hostile names.
func sample() Report {
	known := func(v float64) gpu.Reading { return gpu.Reading{Value: v, Known: true} }
	busy := gpu.Device{
		Index: 0, UUID: uuid, Name: "NVIDIA H200", Driver: "580.159.03", PCI: "00000000:0F:00.0", ComputeCapability: "9.0",
		MIG: gpu.On, Persistence: gpu.On, PowerLimit: known(700), PowerDraw: known(698.4), Temperature: known(61), SMClock: known(1725),
		MemoryClock: known(3201), MaxSMClock: known(1980), MaxMemClock: known(3201), MemoryTotal: known(143771), MemoryUsed: known(512), Utilization: known(100),
		Throttle: gpu.Throttle{Known: true, Active: []string{"gpu_idle", "sw_power_cap"}},
	}
	lost := gpu.Device{Index: 1, UUID: "GPU-00000000-7d0e-4b6a-9c55-0a1b2c3d4e5f", Name: "NVIDIA H200", Driver: "580.159.03", MIG: gpu.Absent, Persistence: gpu.Absent,
		PowerDraw: gpu.Reading{Why: "GPU is lost"}}
	r := Report{Schema: schema, GPUs: []device{
		{Device: busy, Status: fine, UsersKnown: true, LockedBy: "process 12 (gate check)", Processes: []gpu.Process{
			{UUID: uuid, PID: 4711, Name: "a\x1b[31m\nmissing  nvcc", Memory: known(512)}, {UUID: uuid, PID: 4712}}},
		{Device: lost, Status: broken, Fault: "GPU is lost", LockError: "permission denied"},
	}}
	r.add(check{Name: "nvcc", Status: fine, Detail: "13.0.88", Without: "dropped", Fix: "dropped"})
	r.add(check{Name: "driver", Status: fine, Detail: "580.159.03"})
	r.add(check{Name: "store", Status: unknown, Detail: "s3://bucket\nok nvcc", Without: "no evidence", Fix: "gate baseline list"})
	return r
}

func TestGolden(t *testing.T) {
	r := sample()
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/sample.txt", text.Bytes())
	golden(t, "testdata/sample.json", append(data, '\n'))
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

func TestWriteErrorIsReturned(t *testing.T) {
	if err := sample().WriteText(failingWriter{}); err == nil {
		t.Error("no error")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestManyUsersAreCounted(t *testing.T) {
	g := device{UsersKnown: true, Processes: make([]gpu.Process, 100)}
	if got := g.users(); !strings.HasSuffix(got, "; and 92 more") {
		t.Errorf("got %s", got)
	}
}
