package collect

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func TestUnknownCounters(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"==PROF== Connected to process 12\n", ""},
		{"==ERROR== Failed to find metric sm__no_such.sum\n", "sm__no_such.sum"},
		{"==ERROR== Failed to find metric regex:^sm__no_such.sum\n", "sm__no_such.sum"},
		{"==ERROR== Failed to find metric a__b.\n==ERROR== Failed to find metric c__d.avg\n", "a__b c__d.avg"},
		{"Failed to find metric\n", ""},
	} {
		var got []string
		for name := range unknownCounters([]byte(c.text)) {
			got = append(got, name)
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%q: %q, want %q", c.text, text, c.want)
		}
	}
}

func TestWithout(t *testing.T) {
	all := []string{"a__b.sum", "a__b.avg.pct_of_peak_sustained_elapsed", "c__d.max", "launch__registers"}
	for _, c := range []struct{ unknown, want string }{
		{"", "a__b.sum a__b.avg.pct_of_peak_sustained_elapsed c__d.max launch__registers"},
		{"a__b.sum", "a__b.avg.pct_of_peak_sustained_elapsed c__d.max launch__registers"},
		{"a__b", "c__d.max launch__registers"},
		{"launch__registers c__d.max a__b", ""},
		{"c__d.min", "a__b.sum a__b.avg.pct_of_peak_sustained_elapsed c__d.max launch__registers"},
	} {
		unknown := map[string]bool{}
		for _, name := range strings.Fields(c.unknown) {
			unknown[name] = true
		}
		if got := strings.Join(without(all, unknown), " "); got != c.want {
			t.Errorf("without %q: %q, want %q", c.unknown, got, c.want)
		}
	}
	if len(all) != 4 || all[0] != "a__b.sum" {
		t.Error("the list was changed")
	}
}

func TestOnlyJSON(t *testing.T) {
	text := "==PROF== Connected to process 1 (/x)\n{\"config\":{}}\r\n==PROF== Profiling\n \n{\"end\":{}}"
	if got := string(onlyJSON([]byte(text))); got != "{\"config\":{}}\r\n{\"end\":{}}" {
		t.Errorf("%q", got)
	}
}

// fakeNCU is an ncu that runs a script with $log set to its log file, then
// the program that it was given.
func fakeNCU(t *testing.T, c *Bench, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ncu")
	text := "#!/bin/sh\ndir=" + filepath.Dir(path) + "\necho run >>$dir/runs\nprintf '%s\\n' \"$@\" >$dir/args\n" +
		"while [ $# -gt 0 ]; do [ \"$1\" = --log-file ] && log=$2; [ \"$1\" = --metrics ] && metrics=$2; shift; done\n" + script + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	c.ncu, c.profiler, c.metrics = path, "ncu 2025.3.1", []string{"ncu.registers_per_thread", "ncu.achieved_occupancy"}
}

// starts is how often ncu was started.
func starts(t *testing.T, c *Bench) int {
	t.Helper()
	runs, err := os.ReadFile(filepath.Join(filepath.Dir(c.ncu), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(runs), "\n")
}

const occupancyCounter = "sm__warps_active.avg.pct_of_peak_sustained_active"

// page is a raw page of one launch with these columns.
func page(columns, units, values string) string {
	return `"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"` + columns + "\n" +
		`"","","","","","","","","","",""` + units + "\n" +
		`"0","7","harness","127.0.0.1","add(int *)","1","7","(32, 1, 1)","(4, 1, 1)","0","9.0"` + values + "\n"
}

func TestProfileTellsFailuresApart(t *testing.T) {
	harness := say(configLine, profileLine, endLine(profileLine))
	both := page(`,"`+occupancyCounter+`","launch__registers_per_thread"`, `,"%","register/thread"`, `,"61.5","40"`)
	log := func(text string) string { return "cat >$log <<'PAGE'\n" + text + "PAGE\n" }
	for _, c := range []struct {
		name, script  string
		kind          evidence.FailureKind
		message, hint string
	}{
		{"well", log(both) + harness, "", "", ""},
		{"no permission", log("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.\n") + harness,
			evidence.Permission, "the user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)", "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"},
		{"no permission, on stderr", "echo '==ERROR== ERR_NVGPUCTRPERM' >&2; exit 1",
			evidence.Permission, "the user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)", "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"},
		{"no table", harness, evidence.Tool, "the file holds no table of ncu (ncu ended with status 0)", ""},
		{"crash", "echo lost >&2; exit 139", evidence.Tool, "the file holds no table of ncu (ncu ended with status 139: lost)", ""},
		{"killed", "echo lost >&2; kill -KILL $$", evidence.Tool, "the file holds no table of ncu (ncu was ended by a signal: killed: lost)", ""},
		{"killed after its table", log(both) + harness + "kill -KILL $$", evidence.Tool, "ncu was ended by a signal: killed", ""},
		{"table of a harness that broke", log(both) + "echo broken >&2; exit 5", evidence.Tool, "ncu ended with status 5: broken", ""},
		{"no end record", log(both) + say(configLine, profileLine), evidence.Tool, "ncu ended with status 0", ""},
		{"CUDA error in the kernel", log(both) + say(configLine, errorLine, endLine(errorLine)) + "exit 1", evidence.CUDA, "an illegal memory access was encountered", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector, kept := fake(t, "")
			fakeNCU(t, collector, c.script)
			records, err := collector.profileUnits(context.Background(), []unit{of("op/k", "small")})
			if err != nil || len(records) != 1 || starts(t, collector) != 1 {
				t.Fatalf("%d records of %d starts, %v", len(records), starts(t, collector), err)
			}
			r := records[0]
			if c.kind == "" {
				if r.Failure != nil || len(*kept) != 1 {
					t.Fatalf("%v, %d kept", r.Failure, len(*kept))
				}
				if v := r.Metrics.Get("ncu.achieved_occupancy"); !v.Known() || v.Number != 61.5 || v.Unit() != "%" {
					t.Errorf("occupancy %+v", v)
				}
				return
			}
			if r.Failure == nil || r.Failure.Kind != c.kind || !strings.Contains(r.Failure.Message, c.message) || r.Failure.Hint != c.hint || len(*kept) != 0 {
				t.Errorf("%+v, %d kept", r.Failure, len(*kept))
			}
		})
	}
}

// TestCounterThatThisChipLacks: ncu is asked again without it, and the figure
// that is made from it is missing, by name, and not 0.
func TestCounterThatThisChipLacks(t *testing.T) {
	c, kept := fake(t, "")
	fakeNCU(t, c, "case $metrics in *"+occupancyCounter+"*) echo '==ERROR== Failed to find metric "+occupancyCounter+"' >$log; exit 1;; esac\n"+
		"cat >$log <<'PAGE'\n"+page(`,"launch__registers_per_thread"`, `,"register/thread"`, `,"40"`)+"PAGE\n"+say(configLine, profileLine, endLine(profileLine)))
	records, err := c.profileUnits(context.Background(), []unit{of("op/k", "small")})
	if err != nil || len(records) != 1 || records[0].Failure != nil || len(*kept) != 1 {
		t.Fatalf("%v, %+v", err, records)
	}
	r := records[0]
	if v := r.Metrics.Get("ncu.achieved_occupancy"); v.Known() || !strings.Contains(v.Missing(), occupancyCounter) {
		t.Errorf("occupancy %+v", v)
	}
	if v := r.Metrics.Get("ncu.registers_per_thread"); !v.Known() || v.Number != 40 {
		t.Errorf("registers %+v", v)
	}
	if n := starts(t, c); n != 2 {
		t.Errorf("ncu ran %d times, want 2", n)
	}
}

func TestWithoutProfiler(t *testing.T) {
	c, kept := fake(t, "")
	c.ncuWhy = "Nsight Compute is missing"
	records, err := c.profileUnits(context.Background(), []unit{of("op/k", "small"), of("op/k", "large")})
	if err != nil || len(records) != 2 || len(*kept) != 0 {
		t.Fatalf("%d records, %d kept, %v", len(records), len(*kept), err)
	}
	for _, r := range records {
		if r.Failure == nil || r.Failure.Kind != evidence.Tool || r.Failure.Message != c.ncuWhy {
			t.Errorf("%+v", r)
		}
	}
}
