package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// made is what was built of op/k on both sides, of op/two for two
// architectures, and of a reference.
func made() *build.Set {
	kernel := func(name string, arch ...string) *manifest.Kernel {
		return &manifest.Kernel{Name: name, Op: testOp, Arch: arch, Cases: []manifest.Case{{Name: "small"}, {Name: "large"}}}
	}
	artifact := func(code string) *build.Artifact {
		return &build.Artifact{Arch: "sm_90", Library: "/lib/" + code + ".so", Identity: codeOf(code)}
	}
	s := &build.Set{}
	for _, k := range []*manifest.Kernel{kernel("op/k", "sm_90"), kernel("op/two", "sm_80", "sm_90"), kernel("op/ref", "sm_90")} {
		s.Add(build.Result{Kernel: k, Artifact: artifact(k.Name)}, build.Result{Kernel: k, Artifact: artifact(k.Name + "-base")})
	}
	return s
}

func codeOf(code string) evidence.Identity {
	return evidence.Identity{Code: strings.ReplaceAll(code, "/", "-"), Host: "h"}
}

// task is a record to be measured: of a kernel, or of the reference named.
func task(tier evidence.Tier, kernel, code, reference, kase string) plan.Task {
	at := evidence.Address{Identity: codeOf(code), Op: "op", Case: kase, Harness: "id", Machine: "m"}
	return plan.Task{Key: evidence.Key{Tier: tier, At: at}, Subject: &plan.Subject{Name: kernel, Arch: "sm_90"}, Reference: reference}
}

// against is a task of two arms.
func against(t plan.Task, code string) plan.Task {
	t.Base = t.At
	t.Base.Identity = codeOf(code)
	return t
}

// checksOf passes every run that it is asked for, and logs what it is asked.
// Shell code runs before.
func checksOf(shell string) string {
	return `runs=$(echo "$*" | grep -o -e '--run [^ ]*' | sed 's/--run //')
echo "$1" $runs >>asked
` + shell + `
echo '` + configLine + `'
n=0
for u in $runs; do
  echo '` + checkLine + `' | sed "s|op/k|${u%@*}|; s|\"small\"|\"${u#*@}\"|"
  n=$((n + 1))
done
echo "{\"end\":{\"begin\":0,\"check\":$n,\"time\":0,\"profile\":0,\"error\":0}}"
`
}

// onePage is an ncu that measures the registers of one launch of what it is asked for.
var onePage = "cat >$log <<'PAGE'\n" + page(`,"launch__registers_per_thread"`, `,"register/thread"`, `,"40"`) + "PAGE\n" +
	"run=$(sed -n '/^--run$/{n;p}' $dir/args)\nsed \"s|op/k|${run%@*}|; s|\\\"small\\\"|\\\"${run#*@}\\\"|\" <<'LINES'\n" + configLine + "\n" + profileLine + "\n" + endLine(profileLine) + "\nLINES\n"

func entries(l *evidence.Ledger, tasks []plan.Task) []evidence.Entry {
	var out []evidence.Entry
	for _, t := range tasks {
		out = append(out, l.Find(evidence.NeedOf(t.Key)))
	}
	return out
}

// TestFill: each kind of step enters a record for every task, under the task's
// own key.
func TestFill(t *testing.T) {
	test := func(task int) plan.Test {
		limits, err := compare.Profile("standard")
		if err != nil {
			t.Fatal(err)
		}
		return plan.Test{Task: task, Test: compare.Test{CacheState: evidence.Warm, Summary: compare.Typical, Bound: compare.Bound{Limits: limits}}}
	}
	for _, c := range []struct {
		name, script, log, asked string // what the processes were asked for, each line once
		step                     plan.Step
	}{
		{"correctness, a process for each contender", checksOf(""), "asked",
			"check op/k@small op/k@large\ncheck op/ref:reference:sm_90@small\ncheck op/two:sm_90@small",
			plan.Step{Tier: evidence.Correctness, Tasks: []plan.Task{
				task(evidence.Correctness, "op/k", "op/k", "", "small"), task(evidence.Correctness, "op/k", "op/ref", "op/ref", "small"),
				task(evidence.Correctness, "op/two", "op/two", "", "small"), task(evidence.Correctness, "op/k", "op/k", "", "large")}}},
		{"profile", "", "", "", plan.Step{Tier: evidence.Profile, Tasks: []plan.Task{
			task(evidence.Profile, "op/k", "op/k", "", "small"), task(evidence.Profile, "op/k", "op/k-base", "", "small")}}},
		{"alone", timesOf(""), "processes", "--run op/k@small --run op/two:sm_90@large",
			plan.Step{Tier: evidence.Latency, Tasks: []plan.Task{
				task(evidence.Latency, "op/k", "op/k", "", "small"), task(evidence.Latency, "op/two", "op/two", "", "large")}}},
		{"together", timesOf(""), "processes", "--run op/k@small\n--run op/k@small --run op/ref:reference:sm_90@small",
			plan.Step{Tier: evidence.Latency, Plan: oneElsewhere(), Tests: []plan.Test{test(0), test(1)}, Tasks: []plan.Task{
				against(task(evidence.Latency, "op/k", "op/k", "", "small"), "op/k-base"),
				against(task(evidence.Latency, "op/k", "op/k", "op/ref", "small"), "op/ref")}}},
	} {
		b, kept := fake(t, c.script)
		b.made, b.budget = made(), compare.Budget{Pairs: 4}
		b.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
		fakeNCU(t, b, onePage)
		l := &evidence.Ledger{}
		if err := b.Fill(context.Background(), c.step, l); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for i, e := range entries(l, c.step.Tasks) {
			if !e.Measured() || !e.Tried || e.Source != evidence.Measured || e.Record.Key() != c.step.Tasks[i].Key {
				t.Errorf("%s: task %d: %+v, record %+v", c.name, i, e, e.Record)
			}
		}
		if len(*kept) != len(c.step.Tasks) {
			t.Errorf("%s: %d kept", c.name, len(*kept))
		}
		if c.log == "" {
			continue
		}
		if got := askedFor(t, b, c.log); got != c.asked {
			t.Errorf("%s: asked for\n%s\nwant\n%s", c.name, got, c.asked)
		}
	}
}

// askedFor is a log of the harness, each line once and its units sorted where
// their order is drawn.
func askedFor(t *testing.T, b *Bench, log string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(b.program), log))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if log == "processes" {
			units := strings.Split(strings.TrimPrefix(line, "--run "), "--run ")
			slices.Sort(units)
			line = "--run " + strings.Join(units, " --run ")
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// TestFillKeepsWhatCameBeforeAnError: every task has been tried, so that none is
// asked for again, and what was measured is in the ledger.
func TestFillKeepsWhatCameBeforeAnError(t *testing.T) {
	gone := `case "$*" in *op/two*) touch dead; kill -SEGV $$;; esac`
	step := plan.Step{Tier: evidence.Correctness, Tasks: []plan.Task{
		task(evidence.Correctness, "op/k", "op/k", "", "small"), task(evidence.Correctness, "op/two", "op/two", "", "small"), task(evidence.Correctness, "op/k", "op/ref", "op/ref", "small")}}
	b, _ := fake(t, checksOf(gone))
	b.made = made()
	l := &evidence.Ledger{}
	if err := b.Fill(context.Background(), step, l); !errors.Is(err, errDevice) {
		t.Errorf("%v", err)
	}
	got := entries(l, step.Tasks)
	if !got[0].Measured() || got[1].Failure() == nil || got[1].Failure().Kind != evidence.Crash || got[2].Record != nil {
		t.Errorf("%+v", got)
	}
	for i, e := range got {
		if !e.Tried {
			t.Errorf("task %d was not tried", i)
		}
	}
}

// TestFillKeepsWhatCouldNotBeStored: what was measured is judged although it
// cannot be written down.
func TestFillKeepsWhatCouldNotBeStored(t *testing.T) {
	full := errors.New("the disk is full")
	for tier, script := range map[evidence.Tier]string{evidence.Correctness: checksOf(""), evidence.Profile: "", evidence.Latency: timesOf("")} {
		b, _ := fake(t, script)
		fakeNCU(t, b, onePage)
		b.made = made()
		b.keep = func(r *evidence.Record, _ string, _ map[string][]byte) error {
			if r.Address.Code == "op-two" {
				return full
			}
			return nil
		}
		step := plan.Step{Tier: tier, Tasks: []plan.Task{task(tier, "op/k", "op/k", "", "small"), task(tier, "op/two", "op/two", "", "small"), task(tier, "op/k", "op/ref", "op/ref", "small")}}
		l := &evidence.Ledger{}
		if err := b.Fill(context.Background(), step, l); !errors.Is(err, full) {
			t.Errorf("%s: %v", tier, err)
		}
		if got := entries(l, step.Tasks); !got[0].Measured() || !got[1].Measured() || got[2].Record != nil || !got[2].Tried {
			t.Errorf("%s: %+v", tier, got)
		}
	}
}

// fakeSMI puts an nvidia-smi on PATH that runs a script.
func fakeSMI(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv(gpu.EnvNVML, "off")
}

// row is one line of nvidia-smi's list.
func row(index int, name, powerLimit string) string {
	return fmt.Sprintf("echo '%d, %s, NVIDIA %s, 580.159.03, 00000000:0F:00.0, 9.0, Disabled, Enabled, %s, 80.1, 35, 345, 3201, 1980, 3201, 143771, 1, 0, 0x0'\n",
		index, uuidOf(index), name, powerLimit)
}

func uuidOf(index int) string { return fmt.Sprintf("GPU-%08d-0000-0000-0000-000000000000", index) }

func TestChoose(t *testing.T) {
	const needsReset = "[GPU requires reset]"
	for _, c := range []struct {
		name, smi, gpu string
		want           int    // index of the device, where there is no error
		err            string // its text
		status         int    // 0 for a machine that has no GPU to measure on
		hint           string
	}{
		{name: "the first that is wanted", smi: row(0, "H100", "700") + row(1, "H200", "700") + row(2, "H200", "700"), want: 1},
		{name: "by index", smi: row(0, "H200", "700") + row(1, "H200", "700"), gpu: "1", want: 1},
		{name: "by UUID", smi: row(0, "H200", "700") + row(1, "H200", "700"), gpu: uuidOf(1), want: 1},
		{name: "a fault elsewhere", smi: row(0, "H100", needsReset) + row(1, "H200", "700"), want: 1},
		{name: "no driver", smi: "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9", err: "this machine has no GPU to measure on"},
		{name: "no device", smi: "echo 'No devices were found'; exit 6", err: "this machine has no GPU to measure on"},
		{name: "another GPU", smi: row(0, "H100", "700") + row(1, "A100", "400"), err: "this machine has NVIDIA H100, NVIDIA A100, which is not what the policy asks for"},
		{name: "no such GPU", smi: row(0, "H200", "700"), gpu: "7", err: `no GPU "7" of this machine is one that the policy asks for`, status: exit.Usage, hint: "there are NVIDIA H200"},
		{name: "a GPU that is not wanted", smi: row(0, "H100", "700") + row(1, "H200", "700"), gpu: "0", err: `no GPU "0" of this machine is one that the policy asks for`, status: exit.Usage, hint: "there are NVIDIA H100, NVIDIA H200"},
		{name: "a fault", smi: row(0, "H200", needsReset), err: "the device does not answer: NVIDIA H200: GPU requires reset", status: exit.Tool},
		{name: "an answer that is not understood", smi: "printf nonsense", err: "list GPUs: line 1 of nvidia-smi: 1 columns, want 19: nonsense", status: exit.Tool},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeSMI(t, c.smi)
			o := Options{GPU: c.gpu, Tools: &toolchain.Toolchain{Version: "13.0.88"}}
			var seen []evidence.Machine
			d, err := choose(context.Background(), o, func(m evidence.Machine) bool { seen = append(seen, m); return m.Is("h200") })
			if c.err == "" {
				if err != nil || d.Index != c.want || d.UUID != uuidOf(c.want) {
					t.Errorf("%+v, %v", d, err)
				}
				if m := seen[len(seen)-1]; m.Runtime != "13.0" || m.PowerLimitW != "700" || m.GPU != "NVIDIA H200" || m.CC != "9.0" {
					t.Errorf("asked for %+v", m)
				}
				return
			}
			if err == nil || err.Error() != c.err || d != nil {
				t.Fatalf("%+v, %v", d, err)
			}
			var none *NoGPUError
			if errors.As(err, &none) != (c.status == 0) {
				t.Errorf("%T", err)
			}
			if status, hint := exit.Of(err); c.status != 0 && (status != c.status || hint != c.hint) {
				t.Errorf("status %d, hint %q", status, hint)
			}
			if errors.Is(err, errDevice) != (c.name == "a fault") {
				t.Errorf("%v", err)
			}
		})
	}
}

// oneElsewhere is the usual plan of a change that has one test more.
func oneElsewhere() compare.Plan {
	p := compare.SequentialPlan()
	p.Elsewhere = 1
	return p
}
