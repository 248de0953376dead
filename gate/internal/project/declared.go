package project

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Declarations are what the head's kernel.yaml files say of the base, by the names
// of their kernels.
func (p *Project) Declarations() map[string]manifest.Declaration {
	out := map[string]manifest.Declaration{}
	for _, k := range p.head {
		if k.Was != (manifest.Predecessor{}) || len(k.Retired) > 0 {
			out[k.Name] = manifest.Declaration{Was: k.Was, Retired: k.Retired}
		}
	}
	for _, k := range p.base {
		if reason := p.retired[k.Name]; reason != "" {
			out[k.Name] = manifest.Declaration{Gone: reason}
		}
	}
	return out
}

// A joiner pairs what both trees have.
type joiner struct {
	retired func(slot) plan.Retired // where the change declares that a kernel is gone, and why
	bases   map[slot]*build.Result
	known   map[string]bool // names that the base has, whatever the architecture
	paired  map[slot]bool   // what a subject of the head is compared with
}

func (p *Project) joiner(base []build.Result, retired func(slot) plan.Retired) *joiner {
	j := &joiner{retired: retired, bases: map[slot]*build.Result{}, known: map[string]bool{}, paired: map[slot]bool{}}
	if p.NoBase != "" {
		return j
	}
	for i, r := range base {
		j.bases[slot{r.Kernel.Name, r.Arch}] = &base[i]
		j.known[r.Kernel.Name] = true
	}
	return j
}

// pair finds the base of a kernel: under its own name and architecture, else
// under those that it was declared to have had. A kernel that the base has under
// its own name comes from no other, or a deleted kernel could hide in the name of another one.
func (j *joiner) pair(at slot, declared manifest.Predecessor) (base *build.Result, was string) {
	if base := j.bases[at]; base != nil {
		j.paired[at] = true
		return base, ""
	}
	from := at
	if declared.Kernel != "" && !j.known[at.name] {
		from.name = declared.Kernel
	}
	if declared.Arch != "" && j.bases[from] == nil {
		from.arch = declared.Arch
	}
	if from == at || j.bases[from] == nil {
		return nil, ""
	}
	j.paired[from] = true
	switch {
	case from.arch == at.arch:
		was = from.name
	case from.name == at.name:
		was = from.arch
	default:
		was = from.name + " for " + from.arch
	}
	return j.bases[from], was
}

// gone are the kernels of the base that nothing of the head comes from.
func (j *joiner) gone(base []build.Result) []*plan.Subject {
	var out []*plan.Subject
	for _, r := range base {
		at := slot{r.Kernel.Name, r.Arch}
		if j.bases[at] != nil && !j.paired[at] {
			out = append(out, &plan.Subject{Name: at.name, File: r.Kernel.File, Arch: at.arch, State: verdict.Gone, Retired: j.retired(at)})
		}
	}
	return out
}

// retiredAs is where the change declares that a kernel is gone, and why.
func (p *Project) retiredAs(at slot) plan.Retired {
	if reason := p.retired[at.name]; reason != "" {
		return plan.Retired{Reason: reason}
	}
	for _, k := range p.head {
		if r := archRetired(k.Retired, at.arch, k.File); k.Name == at.name && r.Arch != "" {
			return r
		}
	}
	return plan.Retired{}
}

// archRetired is where and why an architecture is retired.
func archRetired(retired []manifest.Retirement, arch, file string) plan.Retired {
	for _, r := range retired {
		if r.Arch == arch {
			return plan.Retired{File: file, Arch: r.Arch, Reason: r.Reason}
		}
	}
	return plan.Retired{}
}

// lost is what the base judges of a kernel and the head leaves out.
func lost(base, head build.Result, renamed bool) []plan.Loss {
	k := head.Kernel
	out := goneCases(base.Kernel, k)
	out = append(out, exchangedOp(base.Kernel.Op.Name, k.Op.Name)...)
	if base.Artifact != nil && head.Artifact != nil {
		out = append(out, goneEntries(base.Artifact, head.Artifact, renamed)...)
	}
	return declared(out, k.Retired, k.File)
}

// exchangedOp is the loss of a computation that became another.
func exchangedOp(base, head string) []plan.Loss {
	if base == head {
		return nil
	}
	return []plan.Loss{{Cause: plan.OtherOp, Op: base}}
}

// declared says of losses where they are declared.
func declared(losses []plan.Loss, retired []manifest.Retirement, file string) []plan.Loss {
	for i := range losses {
		for _, r := range retired {
			if r.Case != "" && r.Case == losses[i].Case || r.Entry != "" && r.Entry == losses[i].Entry {
				losses[i].Declared = plan.Retired{File: file, Reason: r.Reason}
			}
		}
	}
	return losses
}

// goneCases are those that the base measures and the head does not.
func goneCases(base, head *manifest.Kernel) []plan.Loss {
	var gone []plan.Loss
	for _, c := range base.Cases {
		if !slices.ContainsFunc(head.Cases, func(other manifest.Case) bool { return other.Name == c.Name }) {
			gone = append(gone, plan.Loss{Cause: plan.GoneCase, Case: c.Name})
		}
	}
	return gone
}

// goneEntries are the functions that the base judges and the head leaves out, or
// no longer has. Names are compared as written, because the mangled ones hold a
// hash of the file. A function whose parameters changed is the same one, and so is
// an instance of a template with another argument: of one bare name the head needs
// as many as the base has. Those of a kernel that was renamed have other names.
func goneEntries(base, head *build.Artifact, renamed bool) []plan.Loss {
	left, kept, same := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, e := range head.Rest {
		left[build.Demangle(e)] = true
	}
	for _, e := range head.Entries {
		kept[build.Demangle(e)] = true
		same[build.Name(e)]++
	}
	missing := map[string]int{}
	for _, e := range base.Entries {
		missing[build.Name(e)]++
	}
	var out []plan.Loss
	for _, e := range base.Entries {
		name, short := build.Demangle(e), build.Name(e)
		switch {
		case left[name]:
			out = append(out, plan.Loss{Cause: plan.LeftOut, Entry: name})
		case !kept[name] && !renamed && missing[short] > same[short]:
			out = append(out, plan.Loss{Cause: plan.GoneEntry, Entry: name})
		}
	}
	return out
}
