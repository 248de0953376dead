package check

import (
	"sort"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
)

func (j *job) facts() policy.Facts {
	f := policy.Facts{NoBase: j.tree.noBase, LimitsOnly: j.Base == "none"}
	for _, k := range j.kernels {
		facts := k.facts
		facts.Forced = j.Force
		for _, s := range k.cases {
			facts.Cases = append(facts.Cases, s.facts)
		}
		f.Kernels = append(f.Kernels, facts)
	}
	return f
}

// describe adds to the verdict what was compared, on whose evidence.
func (j *job) describe(v *policy.Verdict) {
	v.Head, v.Base = j.tree.headSide, j.tree.baseSide
	if j.tree.noBase != "" {
		v.Base.Why = j.tree.noBase
	}
	v.Notes = append(v.Notes, j.notes...)
	v.Reproduce = j.reproduce()
	v.Machines = machineRefs(j.kernels)
}

func machineRefs(kernels []*kernel) []policy.MachineRef {
	refs := map[string]*policy.MachineRef{}
	for _, k := range kernels {
		for _, s := range k.cases {
			for _, r := range s.records() {
				note(refs, r)
			}
		}
	}
	var out []policy.MachineRef
	for _, r := range refs {
		out = append(out, *r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}

func (s *kase) records() []*evidence.Record {
	var out []*evidence.Record
	for _, arm := range s.facts.Arms() {
		if arm.Record != nil {
			out = append(out, arm.Record)
		}
	}
	return out
}

func note(refs map[string]*policy.MachineRef, r *evidence.Record) {
	m := r.Provenance.Machine
	ref := refs[m.Key()]
	if ref == nil {
		ref = &policy.MachineRef{Key: m.Key(), Description: m.String()}
		refs[m.Key()] = ref
	}
	at := r.Provenance.Recorded
	if ref.Oldest == "" || at < ref.Oldest {
		ref.Oldest = at
	}
	if at > ref.Newest {
		ref.Newest = at
	}
}

// reproduce is the command that leads to this verdict again.
func (j *job) reproduce() string {
	words := []string{"gate", "check"}
	if j.tree.policy.File != "policies.yaml" {
		words = append(words, "--policy", quote(j.tree.policy.File))
	}
	switch {
	case j.Base == "none":
		words = append(words, "--base", "none")
	case j.tree.baseSide.Commit != "":
		words = append(words, "--base", j.tree.baseSide.Commit[:12])
	}
	for _, k := range j.Kernels {
		words = append(words, quote(k))
	}
	return strings.Join(words, " ")
}

// quote writes a word as a shell reads it back.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-@:=+,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
