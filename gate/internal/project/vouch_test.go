package project

import (
	"context"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// TestDeclarationsAreTheFiles: what a bundle declares counts where the kernel.yaml
// that GitHub shows says the same, to the letter.
func TestDeclarationsAreTheFiles(t *testing.T) {
	const file = "kernels/op/k/kernel.yaml"
	was := func(d manifest.Declaration) []Claim { return []Claim{{Name: "op/k", File: file, Declaration: d}} }
	whole := "op: op\nsources: [k.cu]\narch: [sm_90]\ncases: [a]\nwas: {arch: sm_80}\nretire: [{case: b, reason: too long}]\n"
	honest := manifest.Declaration{Was: manifest.Predecessor{Arch: "sm_80"}, Retired: []manifest.Retirement{{Case: "b", Reason: "too long"}}}
	more := honest
	more.Retired = append(more.Retired[:1:1], manifest.Retirement{Case: "c", Reason: "too long"})
	gone := []Departure{{Name: "op/k", File: file, Reason: "superseded"}}
	for name, c := range map[string]struct {
		claims []Claim
		gone   []Departure
		texts  map[string]string
		want   string
	}{
		"nothing":                {was(manifest.Declaration{}), nil, map[string]string{}, ""},
		"the same":               {was(honest), nil, map[string]string{file: whole}, ""},
		"more than it says":      {was(more), nil, map[string]string{file: whole}, "of the change does not make it"},
		"another reason":         {nil, gone, map[string]string{file: "retire: no longer used\n"}, "of the change does not make it"},
		"retired":                {nil, gone, map[string]string{file: "retire: superseded\n"}, ""},
		"retired, and it is not": {nil, gone, map[string]string{file: whole}, "of the change does not make it"},
		"no such file":           {was(honest), nil, map[string]string{}, "cannot be read"},
		"no YAML":                {was(honest), nil, map[string]string{file: "\x00{"}, file},
		"an unknown key":         {was(honest), nil, map[string]string{file: whole + "evil: 1\n"}, "unknown key"},
		"nobody was asked":       {was(honest), nil, nil, "it is not known which commit the change is"},
	} {
		got := (&Project{}).contradicted(context.Background(), c.claims, c.gone, Pull{Texts: c.texts})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTouchedInputs: what is called unchanged although the pull request changes
// what it is built from is said, and left open where that is asked for.
func TestTouchedInputs(t *testing.T) {
	unchanged := plan.Subject{Name: "op/k", Arch: "sm_90", State: verdict.Unchanged}
	renamed := unchanged
	renamed.Name, renamed.Was, renamed.Former = "op/new", "op/k", plan.Former{Name: "op/k", Arch: "sm_90"}
	changed := unchanged
	changed.State = verdict.Changed
	base := results("op/k sm_90 c1 h1, op/k sm_80 c1 h1")
	for i := range base {
		base[i].Artifact.Inputs = map[string]string{"tree/include/k.cuh": "x"}
	}
	for name, c := range map[string]struct {
		subject plan.Subject
		pull    Pull
		touched bool
	}{
		"nothing":               {unchanged, Pull{}, false},
		"its folder":            {unchanged, Pull{Changes: []Change{{"kernels/op/k/k.cu", "modified"}}}, true},
		"a new file beside it":  {unchanged, Pull{Changes: []Change{{"kernels/op/k/x.cuh", "added"}}}, true},
		"a header elsewhere":    {unchanged, Pull{Changes: []Change{{"include/k.cuh", "removed"}}}, true},
		"another kernel":        {unchanged, Pull{Changes: []Change{{"kernels/op/k2/k.cu", "modified"}}}, false},
		"what it was":           {renamed, Pull{Changes: []Change{{"kernels/op/k/k.cu", "removed"}}}, true},
		"files that are cut":    {unchanged, Pull{Cut: true}, true},
		"a kernel that changed": {changed, Pull{Cut: true, Changes: []Change{{"kernels/op/k/k.cu", "modified"}}}, false},
	} {
		s := c.subject
		subjects := []*plan.Subject{&s}
		touched := touchedInputs(subjects, base, c.pull)
		notes := doubted(subjects, touched, false)
		if (len(notes) > 0) != c.touched || s.Head.Why != "" {
			t.Errorf("%s: %q, %+v", name, notes, s.Head)
		}
		doubted(subjects, touched, true)
		if (s.Head.Why != "" && s.Head.Absent) != c.touched {
			t.Errorf("%s, doubted: %+v", name, s.Head)
		}
	}
}
