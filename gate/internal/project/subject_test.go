package project

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/kernels/harness"
)

// built is a result by one word: "op/k sm_90 c1 h1", or "op/k sm_90 !" for
// code that does not compile and "op/k sm_90 ?" for a compiler that failed.
func built(word string) build.Result {
	f := strings.Fields(word)
	r := build.Result{Arch: f[1], Kernel: &manifest.Kernel{Name: f[0], File: "kernels/" + f[0] + "/kernel.yaml", Op: &manifest.Op{Name: "op"}}}
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
		p := &Project{Policy: &policy.Policy{}, NoBase: c.noBase}
		subjects, err := p.join(results(c.head), nil, results(c.base))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got []string
		for _, s := range subjects {
			words := []string{s.Name, s.Arch, string(s.State)}
			switch {
			case s.Head.Why != "" && s.Head.Blame && s.Head.Detail != "":
				words = append(words, "broken-by-itself")
			case s.Head.Why != "" && !s.Head.Blame:
				words = append(words, "broken-by-a-tool")
			case s.State != verdict.Gone && !s.Head.Identity.Known():
				words = append(words, "without-identity")
			}
			if s.Base.Why != "" {
				words = append(words, "no-base-figures")
			}
			if s.Base.Identity.Known() {
				words = append(words, "base")
			}
			if s.File != "kernels/"+s.Name+"/kernel.yaml" || s.Op != "op" && s.State != verdict.Gone {
				t.Errorf("%s: %+v", c.name, s)
			}
			got = append(got, strings.Join(words, " "))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

// TestJoinNamesWhatIsLost: a case, or a function of the sources, that the base
// judges and the head leaves out.
func TestJoinNamesWhatIsLost(t *testing.T) {
	harness, err := build.OpenHarness(t.TempDir(), harness.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, baseCases, headCases, baseEntries, headEntries, headRest, want string }{
		{"nothing", "a b", "a b", "_Z1fv _Z1gv", "_Z1fv _Z1gv", "", ""},
		{"a case", "a b c", "b", "_Z1fv", "_Z1fv", "", "a case is gone: a;a case is gone: c"},
		{"one more case", "a", "a b", "_Z1fv", "_Z1fv", "", ""},
		{"a function that the sources hold", "a", "a", "_Z1fv _Z1gv", "_Z1fv", "_Z1gv", "entries: leaves a function out: g()"},
		{"a function that the sources lost", "a", "a", "_Z1fv _Z1gv", "_Z1fv", "", "a function is gone: g()"},
		{"a function with another parameter", "a", "a", "_Z1fv _Z1gv", "_Z1fv _Z1gi", "", ""},
		{"another instance of a template", "a", "a", "_Z1fILi64EEvv", "_Z1fILi128EEvv", "", ""},
		{"an instance less", "a", "a", "_Z1fILi64EEvv _Z1fILi128EEvv", "_Z1fILi64EEvv", "", "a function is gone: void f<128>()"},
		{"an instance that is another", "a", "a", "_Z1fILi64EEvv _Z1fILi128EEvv", "_Z1fILi32EEvv", "", "a function is gone: void f<64>();a function is gone: void f<128>()"},
		{"a function that was never judged", "a", "a", "_Z1fv", "_Z1fv", "_Z1gv", ""},
		{"a function under another hash of its file", "a", "a", "_ZN36_GLOBAL__N__864febaa_4_k_cu_5176ac7d1fEv", "_Z1gv", "_ZN36_GLOBAL__N__0123abcd_4_k_cu_5176ac7d1fEv", "entries: leaves a function out: (anonymous namespace)::f()"},
	} {
		side := func(cases, entries, rest string) build.Result {
			r := built("op/k sm_90 " + entries[:1] + " h1")
			r.Artifact.Entries, r.Artifact.Rest = strings.Fields(entries), strings.Fields(rest)
			for _, name := range strings.Fields(cases) {
				r.Kernel.Cases = append(r.Kernel.Cases, manifest.Case{Name: name})
			}
			return r
		}
		p := &Project{Policy: &policy.Policy{}, Harness: harness}
		subjects, err := p.join([]build.Result{side(c.headCases, c.headEntries, c.headRest)}, nil, []build.Result{side(c.baseCases, c.baseEntries, "")})
		if err != nil || len(subjects) != 1 {
			t.Fatalf("%s: %d subjects, %v", c.name, len(subjects), err)
		}
		var lost []string
		for _, l := range subjects[0].Lost {
			lost = append(lost, fmt.Sprintf("%s: %s%s", l.Cause, l.Case, l.Entry))
		}
		want := strings.FieldsFunc(c.want, func(r rune) bool { return r == ';' })
		if !slices.Equal(lost, want) {
			t.Errorf("%s: lost %q", c.name, lost)
		}
		ids := map[string]bool{}
		for _, x := range subjects[0].Cases {
			ids[x.Harness] = true
		}
		if cases := strings.Fields(c.headCases); len(subjects[0].Cases) != len(cases) || len(ids) != len(cases) || ids[""] {
			t.Errorf("%s: cases %+v", c.name, subjects[0].Cases)
		}
	}
}

// TestDeclaredChanges: what a kernel was, and what is retired.
func TestDeclaredChanges(t *testing.T) {
	for _, c := range []struct {
		name, head, base string
		was              manifest.Predecessor // of op/k
		retired          []manifest.Retirement
		want             string
	}{
		{"renamed", "op/k sm_90 c1 h1", "op/old sm_90 c1 h1", manifest.Predecessor{Kernel: "op/old"}, nil, "op/k sm_90 unchanged was op/old"},
		{"renamed and changed", "op/k sm_90 c2 h1", "op/old sm_90 c1 h1", manifest.Predecessor{Kernel: "op/old"}, nil, "op/k sm_90 changed was op/old"},
		{"split", "op/k sm_90 c2 h1, op/old sm_90 c3 h1", "op/old sm_90 c1 h1", manifest.Predecessor{Kernel: "op/old"}, nil, "op/k sm_90 changed was op/old, op/old sm_90 changed"},
		{"deleted, hidden by a kernel that the base has", "op/k sm_90 c1 h1", "op/k sm_90 c1 h1, op/old sm_90 c9 h9", manifest.Predecessor{Kernel: "op/old"}, nil, "op/k sm_90 unchanged, op/old sm_90 gone"},
		{"deleted, hidden by another architecture of one", "op/k sm_80 c1 h1, op/k sm_90 c1 h1", "op/k sm_90 c1 h1, op/old sm_80 c9 h9", manifest.Predecessor{Kernel: "op/old"}, nil, "op/k sm_80 new, op/k sm_90 unchanged, op/old sm_80 gone"},
		{"was nothing", "op/k sm_90 c1 h1", "op/j sm_90 c1 h1", manifest.Predecessor{Kernel: "op/old"}, nil, "op/k sm_90 new, op/j sm_90 gone"},
		{"for the features of one chip", "op/k sm_90a c2 h1", "op/k sm_90 c1 h1", manifest.Predecessor{Arch: "sm_90"}, nil, "op/k sm_90a changed was sm_90"},
		{"beside the old one", "op/k sm_90 c1 h1, op/k sm_90a c2 h1", "op/k sm_90 c1 h1", manifest.Predecessor{Arch: "sm_90"}, nil, "op/k sm_90 unchanged, op/k sm_90a changed was sm_90"},
		{"renamed and for another architecture", "op/k sm_90a c2 h1", "op/old sm_90 c1 h1", manifest.Predecessor{Kernel: "op/old", Arch: "sm_90"}, nil, "op/k sm_90a changed was op/old for sm_90"},
		{"renamed on two architectures", "op/k sm_80 c1 h1, op/k sm_90 c2 h2", "op/old sm_80 c1 h1, op/old sm_90 c2 h2", manifest.Predecessor{Kernel: "op/old"}, nil, "op/k sm_80 unchanged was op/old, op/k sm_90 unchanged was op/old"},
		{"an architecture retired", "op/k sm_90 c1 h1", "op/k sm_80 c2 h1, op/k sm_90 c1 h1", manifest.Predecessor{}, []manifest.Retirement{{Arch: "sm_80", Reason: "no such GPU is left"}}, "op/k sm_90 unchanged, op/k sm_80 gone declared"},
		{"another architecture retired", "op/k sm_90 c1 h1", "op/k sm_80 c2 h1, op/k sm_90 c1 h1", manifest.Predecessor{}, []manifest.Retirement{{Arch: "sm_75", Reason: "r"}}, "op/k sm_90 unchanged, op/k sm_80 gone"},
		{"retired", "op/j sm_90 c1 h1", "op/j sm_90 c1 h1, op/late sm_90 c1 h1", manifest.Predecessor{}, nil, "op/j sm_90 unchanged, op/late sm_90 gone declared"},
	} {
		p := &Project{Policy: &policy.Policy{}, retired: map[string]string{"op/late": "superseded"}}
		head := results(c.head)
		for _, r := range head {
			if r.Kernel.Name == "op/k" {
				r.Kernel.Was, r.Kernel.Retired = c.was, c.retired
				p.head = append(p.head, r.Kernel)
			}
		}
		subjects, err := p.join(head, nil, results(c.base))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got []string
		for _, s := range subjects {
			words := []string{s.Name, s.Arch, string(s.State)}
			if s.Was != "" {
				words = append(words, "was", s.Was)
			}
			if s.Retired != (plan.Retired{}) {
				words = append(words, "declared")
			}
			got = append(got, strings.Join(words, " "))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

// TestAnExchangedOpIsLost: a kernel that computes something else is not the one
// that the base judges.
func TestAnExchangedOpIsLost(t *testing.T) {
	head, base := built("op/k sm_90 c2 h1"), built("op/k sm_90 c1 h1")
	head.Kernel.Op = &manifest.Op{Name: "easier"}
	p := &Project{Policy: &policy.Policy{}}
	subjects, err := p.join([]build.Result{head}, nil, []build.Result{base})
	if err != nil || len(subjects[0].Lost) != 1 || subjects[0].Lost[0] != (plan.Loss{Cause: plan.OtherOp, Op: "op"}) {
		t.Errorf("%+v, %v", subjects, err)
	}
}

// TestReferencesOfAKernel: each is the build for the kernel's own architecture,
// or says why it cannot be timed.
func TestReferencesOfAKernel(t *testing.T) {
	reference := func(name string, arch ...string) *manifest.Kernel { return &manifest.Kernel{Name: name, Arch: arch} }
	p := &Project{
		Policy:     &policy.Policy{Rules: []policy.Rule{{RelativeTo: []string{"op/well"}}, {RelativeTo: []string{"op/bad"}}, {RelativeTo: []string{"op/other"}, Kernels: []string{"other/*"}}, {}}},
		references: map[string]*manifest.Kernel{"op/well": reference("op/well", "sm_80", "sm_90"), "op/bad": reference("op/bad", "sm_90"), "op/other": reference("op/other", "sm_90")},
	}
	others := results("op/well sm_80 c1 h1, op/well sm_90 c2 h2, op/bad sm_90 !, op/other sm_90 c3 h3")
	subjects, err := p.join(results("op/k sm_90a c h"), others, nil)
	if err != nil || len(subjects) != 1 || len(subjects[0].References) != 2 {
		t.Fatalf("%+v, %v", subjects, err)
	}
	if got := subjects[0].References["op/well"]; got.Identity.Code != "c2" || got.Why != "" {
		t.Errorf("%+v", got)
	}
	if got := subjects[0].References["op/bad"]; got.Identity.Known() || got.Why != "the reference op/bad does not build: op/bad does not compile" {
		t.Errorf("%+v", got)
	}
}

// TestCompiledReports: the head's report must be readable; that of the base is
// refused by name where it is not.
func TestCompiledReports(t *testing.T) {
	const report = `ptxas info    : Compiling entry function '_Z1fv' for 'sm_90'
ptxas info    : Function properties for _Z1fv
    8 bytes stack frame, 16 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 33 registers, used 0 barriers, 8 bytes cumulative stack size
`
	logged := func(word, text string) build.Result {
		r := built(word)
		r.Artifact.Entries, r.Artifact.Log = []string{"_Z1fv"}, filepath.Join(t.TempDir(), "ptxas.log")
		r.Artifact.Units = []build.Unit{{Functions: []identity.Function{{Name: "_Z1fv", Entry: true, Registers: 33, Frame: 8, Stack: 8, Shared: reserved}}}}
		if err := os.WriteFile(r.Artifact.Log, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return r
	}
	find := func(l *evidence.Ledger, code string) evidence.Entry {
		return l.Find(evidence.NeedOf(evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: evidence.Identity{Code: code, Host: "h"}}}))
	}
	p := &Project{}
	l, err := p.compiled([]build.Result{logged("op/k sm_90 new h", report), built("op/j sm_90 !")}, []build.Result{logged("op/k sm_90 old h", "torn"), built("op/j sm_90 ?")})
	if err != nil {
		t.Fatal(err)
	}
	head, base := find(l, "new"), find(l, "old")
	if !head.Measured() || head.Record.Metrics.Get("ptxas.spill_bytes").Number != 28 || head.Record.Metrics.Get("ptxas.registers_allocated").Number != 40 {
		t.Errorf("head: %+v", head.Record)
	}
	if base.Record != nil || !strings.HasPrefix(base.Unusable, "the base's compiler log cannot be read: ") {
		t.Errorf("base: %+v", base)
	}
	if _, err := p.compiled([]build.Result{logged("op/k sm_90 new h", "torn")}, nil); err == nil || !strings.HasPrefix(err.Error(), "op/k: ") {
		t.Errorf("a torn report of the head: %v", err)
	}
}
