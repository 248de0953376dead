package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Machine is one that the verdict needs evidence from: a model such as
// "h200", or a name for those whose GPU's own name fits a pattern.
type Machine struct {
	Name  string
	Match string // over the names that the driver gives its GPUs; "" for the model
}

type machine struct {
	Name  string `yaml:"name"`
	Match string `yaml:"match"`
}

// UnmarshalYAML reads the name alone as well.
func (m *machine) UnmarshalYAML(n *yamlfile.Node) error {
	if n.Kind == yamlfile.Scalar {
		*m = machine{Name: n.Value}
		return nil
	}
	type plain machine
	return n.Decode((*plain)(m))
}

// Is reports whether the policy means this machine.
func (m Machine) Is(e evidence.Machine) bool {
	if m.Match == "" {
		return e.Is(m.Name)
	}
	gpu := strings.ToLower(e.GPU)
	ok, _ := doublestar.Match(strings.ToLower(m.Match), gpu)
	return ok || strings.EqualFold(m.Match, gpu)
}

// models are the data centre GPUs whose names need no declaration: a policy is
// written before their first evidence.
var models = []string{"a2", "a10", "a10g", "a16", "a30", "a40", "a100", "l4", "l40", "l40s", "h20", "h100", "h200", "b200", "b300", "gh200", "gb200", "gb300"}

// Strange is the error for a name that means no machine: neither one that is
// known, nor a model of gate's list, nor one that the policy declares.
func (p *Policy) Strange(known []evidence.Machine) error {
	for _, m := range p.Machines {
		if m.Match != "" || slices.Contains(models, strings.ToLower(m.Name)) || slices.ContainsFunc(known, m.Is) {
			continue
		}
		names := slices.Clone(models)
		have := "the store and this host have none"
		if len(known) > 0 {
			var list []string
			for _, k := range known {
				if !slices.Contains(list, k.Model()) {
					list = append(list, k.Model())
				}
			}
			names, have = append(names, list...), "the store and this host have "+strings.Join(list, ", ")
		}
		declare := fmt.Sprintf(`known are %s; declare others: {name: %s, match: "NVIDIA …"}`, strings.Join(models, ", "), m.Name)
		return &yamlfile.Error{File: p.File, Line: p.machinesLine, Msg: fmt.Sprintf("machines: no machine is called %q; %s", m.Name, have),
			Advice: yamlfile.DidYouMean(m.Name, names, declare)}
	}
	return nil
}

var machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func (c checker) machines(f *file, p *Policy) error {
	for i, m := range f.Machines {
		for j := range f.Machines[:i] {
			if strings.EqualFold(f.Machines[j].Name, m.Name) {
				return c.bad("machines", "", "machines needs names, each once")
			}
		}
		switch {
		case !machineName.MatchString(m.Name):
			return c.bad("machines", "", "machines needs names, each once")
		case !doublestar.ValidatePattern(m.Match):
			return c.bad("machines", "", "machines: %q is not a pattern over the names of GPUs", m.Match)
		}
		p.Machines = append(p.Machines, Machine(m))
	}
	return nil
}
