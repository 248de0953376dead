package manifest

import (
	"fmt"
	"strings"

	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Predecessor is what the base calls a kernel: another kernel, another
// architecture of it, or both.
type Predecessor struct {
	Kernel, Arch string // "" for the same
}

// A Retirement declares what the base has and this change takes away: a case, a
// __global__ function or an architecture of a kernel, or all of it.
type Retirement struct {
	Case, Entry, Arch, Reason string
}

type predecessor struct {
	Kernel string `yaml:"kernel"`
	Arch   string `yaml:"arch"`
}

// UnmarshalYAML reads the name of a kernel alone as well.
func (p *predecessor) UnmarshalYAML(n *yamlfile.Node) error {
	if n.Kind == yamlfile.Scalar {
		*p = predecessor{Kernel: n.Value}
		return nil
	}
	type plain predecessor
	return n.Decode((*plain)(p))
}

type retirement struct {
	Case   string `yaml:"case"`
	Entry  string `yaml:"entry"`
	Arch   string `yaml:"arch"`
	Reason string `yaml:"reason"`
}

// retirements is a list of parts, or the reason why a whole kernel goes.
type retirements []retirement

// UnmarshalYAML reads a reason alone as well.
func (r *retirements) UnmarshalYAML(n *yamlfile.Node) error {
	if n.Kind == yamlfile.Scalar {
		*r = retirements{{Reason: n.Value}}
		return nil
	}
	return n.Decode((*[]retirement)(r))
}

// whole reports whether a kernel.yaml is nothing but the reason why the kernel
// that was here is retired.
func (f *kernelFile) whole() bool {
	return len(f.Retire) == 1 && f.Retire[0] == retirement{Reason: f.Retire[0].Reason} &&
		f.Op == "" && len(f.Sources)+len(f.Include)+len(f.Objects)+len(f.Libraries)+len(f.Arch)+len(f.Flags)+len(f.Entries)+len(f.Cases) == 0 && f.Was == nil
}

// declare checks what a kernel.yaml says of the base.
func (k *Kernel) declare(f kernelFile, bad func(key, hint, format string, args ...any) error) error {
	if w := f.Was; w != nil {
		k.Was = Predecessor(*w)
		switch {
		case w.Kernel == "" && w.Arch == "":
			return bad("was", "was: attention/r11_old", "was names the kernel, or the architecture, that this one comes from")
		case w.Kernel == k.Name:
			return bad("was", "", "was: %q is this kernel itself", w.Kernel)
		case w.Arch != "" && !archPattern.MatchString(w.Arch):
			return bad("was", "", "%q is not an architecture such as sm_90 or sm_90a", w.Arch)
		}
	}
	for _, r := range f.Retire {
		named := 0
		for _, what := range []string{r.Case, r.Entry, r.Arch} {
			if what != "" {
				named++
			}
		}
		switch {
		case named != 1:
			return bad("retire", "retire: [{case: long, reason: …}]", "retire names one case, entry or arch each time; the reason alone retires a whole kernel, and then there is no other key")
		case strings.TrimSpace(r.Reason) == "":
			return bad("retire", "", "what is retired needs a reason")
		}
		k.Retired = append(k.Retired, Retirement(r))
	}
	return nil
}

// A Declaration is what one kernel.yaml says of the base's kernels. Gone is why
// the kernel itself is gone, "" for one that is there.
type Declaration struct {
	Was     Predecessor
	Retired []Retirement
	Gone    string
}

// Declared reads the declarations of a kernel's kernel.yaml that lies in no tree.
// Nothing else that it says is looked at.
func Declared(text []byte, file, name string) (Declaration, error) {
	var f kernelFile
	lines, err := yamlfile.Decode(text, file, &f)
	if err != nil {
		return Declaration{}, err
	}
	if f.whole() {
		return Declaration{Gone: f.Retire[0].Reason}, nil
	}
	k := &Kernel{Name: name}
	err = k.declare(f, func(key, hint, format string, args ...any) error {
		return &yamlfile.Error{File: file, Line: lines[key], Msg: fmt.Sprintf(format, args...), Advice: hint}
	})
	return Declaration{Was: k.Was, Retired: k.Retired}, err
}
