package manifest

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/nvccflags"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Kernel is one implementation of an op.
type Kernel struct {
	Name string // its folder below the kernels folder: "attention/r11_fa2_mma"
	Dir  string // absolute
	File string // kernel.yaml, relative to the root
	Op   *Op
	// Relative to Dir: sources, folders of headers, and what is linked.
	Sources, Include, Objects, Libraries []string

	Library Library  // the installed library whose result it is; none but for a reference
	Arch    []string // "sm_90"
	Flags   []string // given to nvcc
	Entries []string // patterns over names of __global__ functions; none means all
	Cases   []Case   // of the op; those that are only checked come last
	PDL     bool     // it launches programmatically
	Was     Predecessor
	Retired []Retirement
	Lines   yamlfile.Lines
}

type kernelFile struct {
	Op        string   `yaml:"op"`
	Sources   []string `yaml:"sources"`
	Include   []string `yaml:"include"`
	Objects   []string `yaml:"objects"`
	Libraries []string `yaml:"libraries"`
	Library   Library  `yaml:"library"`
	Arch      []string `yaml:"arch"`
	Flags     []string `yaml:"flags"`
	Entries   []string `yaml:"entries"`
	Cases     []string `yaml:"cases"`
	PDL       bool     `yaml:"pdl"`

	Was    *predecessor `yaml:"was"`
	Retire retirements  `yaml:"retire"`
}

var (
	archPattern = regexp.MustCompile(`^sm_[0-9]{2,3}[af]?$`)
	archMeant   = regexp.MustCompile(`(?i)^(?:sm|compute)?[_-]?([0-9]{1,2})\.?([0-9][af]?)$`)
)

// meantArch reads what others write for an architecture: 90, sm90, 9.0,
// compute_90, SM_90.
func meantArch(a string) string {
	m := archMeant.FindStringSubmatch(a)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", "sm_"+m[1]+strings.ToLower(m[2]))
}

func loadKernel(root, base, file string, ops []*Op) (*Kernel, error) {
	if why := nvccflags.BadName(path.Dir(file)); why != "" {
		return nil, &yamlfile.Error{File: file, Msg: "the folder " + why}
	}
	var f kernelFile
	lines, err := yamlfile.Read(filepath.Join(root, filepath.FromSlash(file)), file, &f)
	if err != nil {
		return nil, err
	}
	bad := func(key, hint, format string, args ...any) error {
		return &yamlfile.Error{File: file, Line: lines[key], Msg: fmt.Sprintf(format, args...), Advice: hint}
	}
	dir := path.Dir(file)
	k := &Kernel{Name: strings.TrimPrefix(dir, base+"/"), File: file,
		Dir: filepath.Join(root, filepath.FromSlash(dir)), Sources: f.Sources, Include: f.Include,
		Objects: f.Objects, Libraries: f.Libraries, Library: f.Library, Arch: f.Arch, Flags: f.Flags, Entries: f.Entries, PDL: f.PDL, Lines: lines}
	if f.whole() {
		if strings.TrimSpace(f.Retire[0].Reason) == "" {
			return nil, bad("retire", "", "a kernel that is retired needs a reason")
		}
		return nil, &retiredError{k.Name, f.Retire[0].Reason}
	}
	if err := f.lacks(bad); err != nil {
		return nil, err
	}
	if err := k.declare(f, bad); err != nil {
		return nil, err
	}
	if err := k.checkFiles(root, bad); err != nil {
		return nil, err
	}
	if r := nvccflags.Check(f.Flags); r != nil {
		return nil, bad(fmt.Sprintf("flags[%d]", r.Index), r.Hint, "%s", r.Msg)
	}
	return k, k.bind(f, ops, bad)
}

// lacks refuses a file without what every kernel has.
func (f *kernelFile) lacks(bad func(key, hint, format string, args ...any) error) error {
	switch {
	case f.Op == "":
		return bad("op", "", "op is missing: which computation does this kernel implement?")
	case len(f.Sources) == 0:
		return bad("sources", "", "sources needs at least one .cu file")
	case len(f.Arch) == 0:
		return bad("arch", "", "arch needs at least one architecture, such as sm_90")
	case len(f.Cases) == 0:
		return bad("cases", "", "cases needs at least one case of the op")
	}
	for i, a := range f.Arch {
		at := fmt.Sprintf("arch[%d]", i)
		if !archPattern.MatchString(a) {
			return bad(at, meantArch(a), "%q is not an architecture such as sm_90 or sm_90a", a)
		}
		if slices.Index(f.Arch, a) != i {
			return bad(at, "", "arch names %q twice", a)
		}
	}
	return nil
}

// checkFiles requires what is named to be there, and each file to be of the kind
// that its key says, since nvcc tells them apart by the ends of their names.
func (k *Kernel) checkFiles(root string, bad func(key, hint, format string, args ...any) error) error {
	if err := localFiles(k.Dir, root, k.Sources); err != nil {
		return bad("sources", meantFile(err), "%v", err)
	}
	source := ".cu"
	if k.Library.Declared() {
		source = ".cc"
	}
	for _, list := range []struct {
		key, suffix string
		files       []string
	}{{"sources", source, k.Sources}, {"objects", ".o", k.Objects}, {"libraries", ".a", k.Libraries}} {
		for i, name := range list.files {
			at := fmt.Sprintf("%s[%d]", list.key, i)
			if path.Ext(name) != list.suffix {
				return bad(at, "", "%q is not the name of a %s file", name, list.suffix)
			}
			if err := local(k.Dir, root, name, "file", fs.FileMode.IsRegular); err != nil {
				return bad(at, meantFile(err), "%v", err)
			}
		}
	}
	if err := k.checkLibrary(root, bad); err != nil {
		return err
	}
	for i, folder := range k.Include {
		if err := local(k.Dir, root, folder, "folder", fs.FileMode.IsDir); err != nil {
			return bad(fmt.Sprintf("include[%d]", i), "", "%v", err)
		}
	}
	return nil
}

// bind attaches the op and the cases by name.
func (k *Kernel) bind(f kernelFile, ops []*Op, bad func(key, hint, format string, args ...any) error) error {
	var names []string
	for _, op := range ops {
		names = append(names, op.Name)
		if op.Name == f.Op {
			k.Op = op
		}
	}
	if k.Op == nil {
		return bad("op", didYouMean(f.Op, names), "unknown op %q", f.Op)
	}
	for i, name := range f.Cases {
		j := slices.IndexFunc(k.Op.Cases, func(c Case) bool { return c.Name == name })
		at := fmt.Sprintf("cases[%d]", i)
		if j < 0 {
			return bad(at, didYouMean(name, k.Op.caseNames()), "op %s has no case %q", k.Op.Name, name)
		}
		if slices.Index(f.Cases, name) != i {
			return bad(at, "", "cases names %q twice", name)
		}
		k.Cases = append(k.Cases, k.Op.Cases[j])
	}
	for _, c := range k.Op.Cases {
		if c.CheckOnly && !slices.Contains(f.Cases, c.Name) {
			k.Cases = append(k.Cases, c)
		}
	}
	return nil
}
