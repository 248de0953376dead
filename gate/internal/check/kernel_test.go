package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/policy"
)

// built is a result by one word: "op/k sm_90 c1 h1", or "op/k sm_90 !" for
// code that does not compile and "op/k sm_90 ?" for a compiler that failed.
func built(word string) build.Result {
	f := strings.Fields(word)
	r := build.Result{Kernel: &manifest.Kernel{Name: f[0], File: "kernels/" + f[0] + "/kernel.yaml"}, Arch: f[1]}
	switch f[2] {
	case "!":
		r.Err = fmt.Errorf("building: %w", &build.CompileError{Kernel: f[0], Output: "k.cu(3): error"})
	case "?":
		r.Err = errors.New("nvcc was stopped")
	default:
		r.Artifact = &build.Artifact{Arch: f[1], Identity: evidence.Identity{Code: f[2], Host: f[3]}}
	}
	return r
}

func results(list string) []build.Result {
	var out []build.Result
	for _, word := range strings.Split(list, ", ") {
		if word != "" {
			out = append(out, built(word))
		}
	}
	return out
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ name, head, base, noBase, want string }{
		{"unchanged", "op/k sm_90 c1 h1", "op/k sm_90 c1 h1", "", "op/k sm_90 unchanged base"},
		{"machine code", "op/k sm_90 c2 h1", "op/k sm_90 c1 h1", "", "op/k sm_90 changed base"},
		{"host code", "op/k sm_90 c1 h2", "op/k sm_90 c1 h1", "", "op/k sm_90 changed base"},
		{"new", "op/k sm_90 c1 h1", "", "", "op/k sm_90 new"},
		{"gone", "", "op/k sm_90 c1 h1", "", "op/k sm_90 gone"},
		{"gone, and it did not build", "", "op/k sm_90 !", "", "op/k sm_90 gone"},
		{"renamed", "op/new sm_90 c1 h1", "op/old sm_90 c1 h1", "", "op/new sm_90 new, op/old sm_90 gone"},
		{"another architecture", "op/k sm_90a c1 h1", "op/k sm_90 c1 h1", "", "op/k sm_90a new, op/k sm_90 gone"},
		{"one more architecture", "op/k sm_80 c1 h1, op/k sm_90 c1 h1", "op/k sm_90 c1 h1", "", "op/k sm_80 new, op/k sm_90 unchanged base"},
		{"no base", "op/k sm_90 c1 h1", "", "it is shallow", "op/k sm_90 no-base"},
		{"no base, whatever was built of one", "op/k sm_90 c1 h1", "op/k sm_90 c1 h1, op/j sm_90 c1 h1", "it is shallow", "op/k sm_90 no-base"},
		{"does not compile", "op/k sm_90 !", "op/k sm_90 c1 h1", "", "op/k sm_90 changed broken-by-itself base"},
		{"new and does not compile", "op/k sm_90 !", "", "", "op/k sm_90 new broken-by-itself"},
		{"compiler fails", "op/k sm_90 ?", "op/k sm_90 c1 h1", "", "op/k sm_90 changed broken-by-a-tool base"},
		{"base does not compile", "op/k sm_90 c1 h1", "op/k sm_90 !", "", "op/k sm_90 changed no-base-figures"},
		{"neither compiles", "op/k sm_90 !", "op/k sm_90 !", "", "op/k sm_90 changed broken-by-itself no-base-figures"},
		{"nothing", "", "", "", ""},
	} {
		var got []string
		for _, k := range join(results(c.head), results(c.base), &tree{noBase: c.noBase}) {
			words := []string{k.name, k.arch, string(k.facts.State)}
			switch {
			case k.facts.Broken != nil && k.facts.Broken.Blame && !k.facts.Broken.Tool && k.facts.Broken.Detail != "":
				words = append(words, "broken-by-itself")
			case k.facts.Broken != nil && k.facts.Broken.Tool && !k.facts.Broken.Blame:
				words = append(words, "broken-by-a-tool")
			}
			if k.facts.BaseProblem != "" {
				words = append(words, "no-base-figures")
			}
			if k.base != nil {
				words = append(words, "base")
			}
			if k.facts.Name != k.name || k.facts.Arch != k.arch || k.facts.File != "kernels/"+k.name+"/kernel.yaml" || k.manifest == nil {
				t.Errorf("%s: %+v", c.name, k)
			}
			got = append(got, strings.Join(words, " "))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		arch, cc string
		want     bool
	}{
		{"sm_90", "9.0", true}, {"sm_90a", "9.0", true}, {"sm_90a", "9.1", false}, {"sm_90", "10.0", false}, {"sm_80", "9.0", false},
		{"sm_80", "8.6", true}, {"sm_80", "8.9", true}, {"sm_86", "8.0", false}, {"sm_86", "8.9", true}, {"sm_89", "8.6", false}, {"sm_89", "8.9", true},
		{"sm_100", "10.0", true}, {"sm_100", "10.3", true}, {"sm_103", "10.0", false}, {"sm_100a", "10.3", false}, {"sm_100f", "10.0", true},
		{"sm_120", "12.0", true}, {"sm_120", "1.2", false}, {"sm_100", "1.0", false}, {"sm_90", "90", false}, {"sm_90", "", false}, {"sm_90", "9", false},
		{"", "9.0", false}, {"sm_", "9.0", false}, {"compute_90", "9.0", false}, {"sm_9", "9.0", false}, {"sm_75", "7.5", true}, {"sm_70", "7.5", true},
	} {
		if got := runs(c.arch, c.cc); got != c.want {
			t.Errorf("%s on %s: %v", c.arch, c.cc, got)
		}
	}
}

func policyOf(t *testing.T, rules ...string) *policy.Policy {
	t.Helper()
	text := "version: 1\nkernels: kernels/**/kernel.yaml\nstore: kernels/evidence\nrules:\n  - " + strings.Join(rules, "\n  - ") + "\n"
	p, err := policy.Parse([]byte(text), "policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		state      policy.State
		force      bool
		want       needs
	}{
		{"static", "{id: a, metric: ptxas.registers, limit: 1}", policy.Changed, false, needs{}},
		{"profile limit", "{id: a, metric: ncu.waves, max_regression: 1}", policy.New, false, needs{profile: true}},
		{"profile of both", "{id: a, metric: ncu.waves, max_regression: 1}", policy.Changed, false, needs{profile: true, baseProfile: true}},
		{"profile of what is unchanged", "{id: a, metric: ncu.waves, max_regression: 1}", policy.Unchanged, false, needs{profile: true}},
		{"time limit", "{id: a, metric: latency.typical, limit: 1us}", policy.Changed, false, needs{latency: true, calibration: true}},
		{"time of both", "{id: a, metric: latency.typical, max_regression: 2%}", policy.Changed, false, needs{experiment: true, calibration: true}},
		{"time of what is unchanged", "{id: a, metric: latency.typical, max_regression: 2%}", policy.Unchanged, false, needs{latency: true}},
		{"time of what is unchanged, forced", "{id: a, metric: latency.typical, max_regression: 2%}", policy.Unchanged, true, needs{experiment: true, calibration: true}},
		{"time of what is new", "{id: a, metric: latency.typical, max_regression: 2%}", policy.New, false, needs{latency: true}},
		{"time without a base", "{id: a, metric: latency.typical, max_regression: 2%}", policy.NoBase, false, needs{latency: true}},
		{"another kernel's rule", `{id: a, metric: latency.typical, limit: 1us, kernels: ["op/other"]}`, policy.Changed, false, needs{}},
	} {
		j := &job{Options: Options{Force: c.force}, tree: &tree{policy: policyOf(t, c.rule)}}
		k := &kernel{name: "op/k", facts: policy.KernelFacts{State: c.state}}
		if got := j.needed(k); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestProfileMetricsHoldThePolicys(t *testing.T) {
	j := &job{tree: &tree{policy: policyOf(t, "{id: a, metric: ncu.raw.sm__cycles_active.avg, max_regression: 1}", "{id: b, metric: ncu.waves, max_regression: 1}")}}
	names, seen := j.profileMetrics(), map[string]bool{}
	for _, n := range names {
		if seen[n] {
			t.Errorf("%s twice", n)
		}
		seen[n] = true
	}
	if !seen["ncu.raw.sm__cycles_active.avg"] || !seen["ncu.waves"] || !seen["ncu.achieved_occupancy"] || seen["ptxas.registers"] {
		t.Errorf("%v", names)
	}
}

func TestReproduce(t *testing.T) {
	base := policy.Side{Commit: strings.Repeat("0123456789", 4)}
	for _, c := range []struct {
		want    string
		base    string
		side    policy.Side
		policy  string
		kernels []string
	}{
		{"gate check --base 012345678901", "", base, "policies.yaml", nil},
		{"gate check --base 012345678901", "main", base, "policies.yaml", nil},
		{"gate check --base none", "none", policy.Side{}, "policies.yaml", nil},
		{"gate check", "", policy.Side{}, "policies.yaml", nil},
		{"gate check --policy 'my policy.yaml' --base 012345678901 op/k 'attn_*' 'gemm<128,64>' 'it'\\''s' '$(rm -rf ~)'", "", base, "my policy.yaml",
			[]string{"op/k", "attn_*", "gemm<128,64>", "it's", "$(rm -rf ~)"}},
	} {
		j := &job{Options: Options{Base: c.base, Kernels: c.kernels}, tree: &tree{policy: &policy.Policy{File: c.policy}, baseSide: c.side}}
		if got := j.reproduce(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
