package collect

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

const (
	heading   = "========= COMPUTE-SANITIZER\n"
	noErrors  = heading + "========= ERROR SUMMARY: 0 errors\n"
	noHazards = heading + "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
)

// TestFindings: the files are what compute-sanitizer 2025.3.1 printed on an H200,
// and on a machine without a GPU.
func TestFindings(t *testing.T) {
	recorded := func(name string) string {
		data, err := os.ReadFile(filepath.Join("testdata", "sanitizer", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	outside := heading + "========= Invalid __global__ read of size 4 bytes\n=========     at scale(float *, int)+0x70 in scale.cu:9\n=========     by thread (0,0,0) in block (0,0,0)\n=========     Access at 0x7f is out of bounds\n========= \n"
	for _, c := range []struct {
		name, tool, log string
		count           float64
		where, err      string
	}{
		{"a race", "racecheck", recorded("racecheck_two_hazards"), 2, "attn_r03_light_barrier light_barrier.cu:73", ""},
		{"no race", "racecheck", recorded("racecheck_clean"), 0, "", ""},
		{"nothing out of bounds", "memcheck", recorded("memcheck_clean"), 0, "", ""},
		{"nothing unwritten", "initcheck", recorded("initcheck_clean"), 0, "", ""},
		{"no CUDA in the program", "memcheck", recorded("no_cuda"), 0, "", "it holds no summary: ========= Error: Target application terminated before first instrumented API call"},

		{"one access", "memcheck", outside + "========= ERROR SUMMARY: 1 error\n", 1, "scale(float *, int) scale.cu:9", ""},
		{"more than are printed", "memcheck", outside + "========= ERROR SUMMARY: 512 errors\n========= 492 errors were not printed. Use --print-limit option to adjust the number of printed errors\n", 512, "scale(float *, int) scale.cu:9", ""},
		{"warnings count", "racecheck", strings.Replace(noHazards, "0 hazards displayed (0 errors, 0 warnings)", "1 hazard displayed (0 errors, 1 warning)", 1), 1, "", ""},
		{"no file", "memcheck", "", 0, "", "it began 0 times"},
		{"cut short", "memcheck", outside, 0, "", "it holds no summary: ========= Invalid __global__ read of size 4 bytes"},
		{"cut in its summary", "memcheck", strings.TrimSuffix(noErrors, " errors\n"), 0, "", "it holds no summary"},
		{"without its heading", "memcheck", strings.TrimPrefix(noErrors, heading), 0, "", "it began 0 times"},
		{"the summary of another tool", "memcheck", noHazards, 0, "", "is not a summary of memcheck"},
		{"the summary of another tool", "racecheck", noErrors, 0, "", "is not a summary of racecheck"},
		{"two runs in one log", "memcheck", noErrors + noErrors, 0, "", "it sums up twice"},
		{"a line that is not known", "memcheck", strings.Replace(noErrors, heading, heading+"========= Internal Sanitizer Error\n", 1), 0, "", `it found nothing and says "========= Internal Sanitizer Error"`},
		{"a number without end", "memcheck", heading + "========= ERROR SUMMARY: 99999999999999999999 errors\n", 0, "", "it holds no summary"},
	} {
		v, err := findings(c.tool, []byte(c.log))
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %+v, %v", c.name, v, err)
			}
		case err != nil || !v.Known() || v.Number != c.count || v.Where() != c.where:
			t.Errorf("%s: %+v, %v", c.name, v, err)
		}
	}
}

// FuzzFindings: a log is clean only if it is one that says so and nothing else.
func FuzzFindings(f *testing.F) {
	f.Add("memcheck", noErrors)
	f.Add("racecheck", noHazards)
	f.Add("memcheck", "=========\n"+noErrors)
	f.Fuzz(func(t *testing.T, tool, log string) {
		v, err := findings(tool, []byte(log))
		if err != nil || v.Number > 0 {
			return
		}
		for line := range strings.SplitSeq(strings.TrimSpace(log), "\n") {
			switch line = strings.TrimRight(line, " "); {
			case line == "" || line == "=========" || line == strings.TrimSpace(heading):
			case strings.HasPrefix(line, "========= ERROR SUMMARY: 0") && tool != "racecheck":
			case strings.HasPrefix(line, "========= RACECHECK SUMMARY: 0") && tool == "racecheck":
			default:
				t.Errorf("%q counts as clean", log)
			}
		}
		if strings.Count(log, "SUMMARY") != 1 || strings.Count(log, "COMPUTE-SANITIZER") != 1 {
			t.Errorf("%q counts as one search", log)
		}
	})
}

// sanitizing is a compute-sanitizer that runs a script with $tool and $log set.
func sanitizing(t *testing.T, c *Bench, script string) {
	t.Helper()
	c.sanitizer, c.sanitizerVersion = filepath.Join(t.TempDir(), "compute-sanitizer"), "compute-sanitizer 2025.3.1"
	text := "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = --tool ] && tool=$2; [ \"$1\" = --log-file ] && log=$2; shift; done\n" + script + "\n"
	if err := os.WriteFile(c.sanitizer, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

const cleanLog = `printf '========= COMPUTE-SANITIZER\n' >$log
if [ $tool = racecheck ]; then printf '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n' >>$log
else printf '========= ERROR SUMMARY: 0 errors\n' >>$log; fi
`

func TestSanitizerTellsFailuresApart(t *testing.T) {
	harness := say(configLine, profileLine, endLine(profileLine))
	races := "if [ $tool = racecheck ]; then printf '========= COMPUTE-SANITIZER\\n========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)\\n' >$log; fi\n"
	for _, c := range []struct {
		name, script string
		races        float64
		kind         evidence.FailureKind
		message      string
	}{
		{"well", cleanLog + harness, 0, "", ""},
		{"a race", cleanLog + races + harness, 3, "", ""},
		{"a race that breaks the harness", cleanLog + races + "if [ $tool = racecheck ]; then " + say(configLine, errorLine, endLine(errorLine)) + "exit 1; fi\n" + harness, 3, "", ""},
		{"nothing", "exit 0", 0, evidence.Tool, "TOOL said nothing that can be used: it began 0 times (compute-sanitizer ended with status 0)"},
		{"no CUDA", "printf '========= COMPUTE-SANITIZER\\n========= Error: x\\n' >$log; exit 255", 0, evidence.Tool, "it holds no summary: ========= Error: x (compute-sanitizer ended with status 255)"},
		{"killed", "echo lost >&2; kill -KILL $$", 0, evidence.Tool, "compute-sanitizer was ended by a signal: killed: lost"},
		{"findings of a harness that never began", cleanLog + "sed -i 's/ 0 / 2 /' $log; exit 1", 0, evidence.Tool, "compute-sanitizer ended with status 1"},
		{"a log of a harness that broke", cleanLog + "echo broken >&2; exit 5", 0, evidence.Tool, "compute-sanitizer ended with status 5: broken"},
		{"no end record", cleanLog + say(configLine, profileLine), 0, evidence.Tool, "compute-sanitizer ended with status 0"},
		{"CUDA error without a finding", cleanLog + say(configLine, errorLine, endLine(errorLine)) + "exit 1", 0, evidence.CUDA, "an illegal memory access was encountered"},
	} {
		b, kept := fake(t, "")
		var raw map[string][]byte
		b.keep = func(r *evidence.Record, _ string, files map[string][]byte) error {
			*kept, raw = append(*kept, r), files
			return nil
		}
		sanitizing(t, b, c.script)
		for _, tool := range evidence.Sanitizers {
			u := of("op/k", "small")
			u.tool, raw, *kept = tool, nil, nil
			r, err := b.sanitizeUnit(context.Background(), u)
			if err != nil || r.Tool != tool {
				t.Fatalf("%s under %s: %+v, %v", c.name, tool, r, err)
			}
			if c.kind != "" {
				if r.Failure == nil || r.Failure.Kind != c.kind || !strings.Contains(r.Failure.Message, strings.ReplaceAll(c.message, "TOOL", tool)) || len(*kept) != 0 {
					t.Errorf("%s under %s: %+v, %d kept", c.name, tool, r.Failure, len(*kept))
				}
				continue
			}
			want := 0.0
			if tool == "racecheck" {
				want = c.races
			}
			v := r.Metrics.Get("sanitizer." + tool)
			if r.Failure != nil || len(*kept) != 1 || len(raw) != 1 || len(r.Metrics) != 1 || !v.Known() || v.Number != want || r.Provenance.Profiler != b.sanitizerVersion || r.Provenance.Protocol == "" {
				t.Fatalf("%s under %s: %+v, %d kept, %d files", c.name, tool, r, len(*kept), len(raw))
			}
			if err := auditSanitizer(Auditor{}, r, raw); err != nil {
				t.Errorf("%s under %s: %v", c.name, tool, err)
			}
			for _, other := range []string{noErrors, noHazards, strings.Replace(noErrors, "0", "7", 1), strings.Replace(noHazards, "0", "7", 1), ""} {
				if err := auditSanitizer(Auditor{}, r, map[string][]byte{tool + ".txt": []byte(other)}); err == nil && (want > 0 || other != noErrors && other != noHazards) {
					t.Errorf("%s under %s: a record with the output %q passes its audit", c.name, tool, other)
				}
			}
		}
	}
}

func TestWithoutSanitizer(t *testing.T) {
	b, kept := fake(t, "")
	b.sanitizerWhy = "compute-sanitizer is missing"
	r, err := b.sanitizeUnit(context.Background(), of("op/k", "small"))
	if err != nil || r.Failure == nil || r.Failure.Kind != evidence.Tool || r.Failure.Message != b.sanitizerWhy || len(*kept) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRealSanitizerTakesTheOptions: every option that gate gives is one of the real
// program's, which refuses an unknown one before it starts anything. GATE_SANITIZER
// is the program that must be there; without it, one that is installed is asked.
func TestRealSanitizerTakesTheOptions(t *testing.T) {
	env, pinned := os.Getenv, os.Getenv("GATE_SANITIZER")
	if pinned != "" {
		env = func(name string) string { return map[string]string{"PATH": filepath.Dir(pinned)}[name] }
	}
	tool, err := toolchain.FindTool(context.Background(), "compute-sanitizer", toolchain.Options{Env: env})
	if pinned != "" && (err != nil || tool.Path != pinned) {
		t.Fatalf("GATE_SANITIZER is %s, found is %q: %v", pinned, tool.Path, err)
	}
	if err != nil {
		t.Skip(err)
	}
	run := func(args ...string) string {
		r, err := command.Command{Path: tool.Path, Args: args, Limit: profileLimit, Most: 1 << 20, Merge: true}.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Stdout)
	}
	if said := run("--no-such-option", "/bin/true"); !strings.Contains(said, "unrecognised option") {
		t.Fatalf("an unknown option is taken: %s", said)
	}
	for _, name := range evidence.Sanitizers {
		log := filepath.Join(t.TempDir(), "log")
		said := run(append(sanitizerArgs(name), log, "/bin/true")...)
		text, err := os.ReadFile(log)
		if err != nil || strings.Contains(said, "option") || !strings.HasPrefix(string(text), heading) {
			t.Errorf("%s: %s, %q, %v", name, said, text, err)
		}
		if v, err := findings(name, text); err == nil {
			t.Errorf("%s: a program without CUDA counts as searched: %+v", name, v)
		}
	}
}
