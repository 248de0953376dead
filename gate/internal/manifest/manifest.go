// Package manifest reads what there is to gate: kernels/**/kernel.yaml, one
// kernel a folder, and the op.yaml files of the computations they implement.
package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/nvccflags"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Kernel is one implementation of an op.
type Kernel struct {
	Name string // its folder below the kernels folder: "attention/r11_fa2_mma"
	Dir  string // absolute
	File string // kernel.yaml, relative to the root
	Op   *Op    //
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

// An Op is a computation: the side that judges correctness.
type Op struct {
	Name      string
	Dir       string
	File      string
	Sources   []string
	Dims      []string
	Cases     []Case
	Tolerance map[string]float64

	Exact     []string // outputs that are compared exactly
	InOut     []string // tensors that are inputs and outputs, in one place
	Alignment int      // tensors lie at multiples of it; 0 for the harness's own
	Workspace int64    // bytes of device memory that every call may use
	Varies    bool     // two runs may differ
	Lines     yamlfile.Lines
}

// A Case is one set of shape parameters, in the op's order of dimensions.
type Case struct {
	Name      string
	Dims      []Dim
	CheckOnly bool  // it is checked and not timed
	Rows      int64 // of the result that are compared where it has more; 0 for all
	Work      roof.Work
}

// A Dim is one shape parameter.
type Dim struct {
	Name string
	Size int64
}

func (c Case) String() string {
	dims := make([]string, len(c.Dims))
	for i, d := range c.Dims {
		dims[i] = fmt.Sprintf("%s:%d", d.Name, d.Size)
	}
	return c.Name + "=" + strings.Join(dims, ",")
}

// A Set is everything that the patterns found in one tree.
type Set struct {
	Root    string
	Kernels []*Kernel         // by name
	Ops     []*Op             // by name
	Notes   []string          // what was not followed
	Retired map[string]string // why kernels were retired, by name
	base    string            // the folder that names are relative to
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

type opFile struct {
	Op        string                      `yaml:"op"`
	Sources   []string                    `yaml:"sources"`
	Dims      []string                    `yaml:"dims"`
	Cases     map[string]map[string]int64 `yaml:"cases"`
	Tolerance map[string]float64          `yaml:"tolerance"`

	CheckCases map[string]map[string]int64 `yaml:"check_cases"`
	Exact      []string                    `yaml:"exact"`
	InOut      []string                    `yaml:"inout"`
	Alignment  int                         `yaml:"alignment"`
	Workspace  int64                       `yaml:"workspace"`
	Repeatable *bool                       `yaml:"repeatable"`

	Work *workFile `yaml:"work"`

	Reference *referenceFile `yaml:"reference"`
}

// Load reads every kernel.yaml under root that the patterns name; a pattern
// after "!" takes kernels away again.
func Load(root string, patterns []string) (*Set, error) {
	w, err := newWalker(root)
	if err != nil {
		return nil, err
	}
	files, base, err := match(w, patterns)
	if err != nil {
		return nil, err
	}
	set, err := load(w, base, files)
	if err != nil {
		return nil, err
	}
	// A library is compared with, and not judged.
	set.Kernels = slices.DeleteFunc(set.Kernels, func(k *Kernel) bool { return k.Library.Declared() })
	return set, nil
}

// LoadAll reads every kernel.yaml of the folder that the patterns name, those
// that they leave out and libraries included.
func LoadAll(root string, patterns []string) (*Set, error) {
	w, err := newWalker(root)
	if err != nil {
		return nil, err
	}
	files, base, err := match(w, slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return strings.HasPrefix(p, "!") }))
	if err != nil {
		return nil, err
	}
	all, err := called(w, base, kernelName)
	if err != nil {
		return nil, err
	}
	return load(w, base, slices.Compact(slices.Sorted(slices.Values(slices.Concat(files, all)))))
}

// kernelName is what a kernel's file is called: patterns select no other, so
// that a folder holds one kernel.
const kernelName = "kernel.yaml"

func load(w *walker, base string, files []string) (*Set, error) {
	set := &Set{Root: w.root, base: base, Retired: map[string]string{}}
	var err error
	if set.Ops, err = loadOps(w, base); err != nil {
		return nil, err
	}
	for _, file := range files {
		k, err := loadKernel(w.root, base, file, set.Ops)
		var gone *retiredError
		if errors.As(err, &gone) {
			set.Retired[gone.name] = gone.reason
			continue
		}
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(set.Kernels, func(o *Kernel) bool { return o.Name == k.Name }); i >= 0 {
			return nil, &yamlfile.Error{File: file, Line: 1, Msg: fmt.Sprintf("kernel %q is already defined in %s", k.Name, set.Kernels[i].File),
				Advice: "a kernel is called by its folder below " + base + "/"}
		}
		set.Kernels = append(set.Kernels, k)
	}
	slices.SortFunc(set.Kernels, func(a, b *Kernel) int { return strings.Compare(a.Name, b.Name) })
	set.Notes = w.notes
	return set, nil
}

// called lists the files of a name below a folder.
func called(w *walker, base, name string) ([]string, error) {
	files, err := w.below(base)
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", name, err)
	}
	return matching(files, func(f string) bool { return path.Base(f) == name })
}

// A NoKernelError is a name of which there is no kernel.yaml.
type NoKernelError struct{ Name, Hint string }

func (e *NoKernelError) Error() string { return fmt.Sprintf("unknown kernel %q", e.Name) }

// Named is the kernel of a name, one that the patterns leave out included.
func (s *Set) Named(name string) (*Kernel, error) {
	var names []string
	for _, k := range s.Kernels {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	missing := &NoKernelError{Name: name, Hint: yamlfile.DidYouMean(name, names, "")}
	file := path.Join(s.base, name, kernelName)
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return nil, missing
	}
	if info, err := os.Stat(filepath.Join(s.Root, filepath.FromSlash(file))); err != nil || !info.Mode().IsRegular() {
		return nil, missing
	}
	k, err := loadKernel(s.Root, s.base, file, s.Ops)
	if errors.As(err, new(*retiredError)) {
		return nil, missing
	}
	return k, err
}

// A retiredError is a kernel.yaml that says why there is no kernel any more.
type retiredError struct{ name, reason string }

func (e *retiredError) Error() string { return fmt.Sprintf("%s is retired: %s", e.name, e.reason) }

// match returns the manifest files, slash-separated, and the folder that the
// kernels' names are relative to.
func match(w *walker, patterns []string) (files []string, base string, err error) {
	found := map[string]bool{}
	for _, p := range patterns {
		pattern, negated := strings.CutPrefix(p, "!")
		if !doublestar.ValidatePattern(pattern) || !filepath.IsLocal(filepath.FromSlash(pattern)) {
			return nil, "", fmt.Errorf("%q is not a pattern for files below the root", p)
		}
		means := func(f string) bool {
			return path.Base(f) == kernelName && (f == pattern || doublestar.MatchUnvalidated(pattern, f))
		}
		if negated {
			maps.DeleteFunc(found, func(f string, _ bool) bool { return means(f) })
			continue
		}
		folder, _ := doublestar.SplitPattern(pattern)
		names, err := w.below(folder)
		if err == nil {
			names, err = matching(names, means)
		}
		if err != nil {
			return nil, "", fmt.Errorf("looking for %s: %w", p, err)
		}
		for _, n := range names {
			found[n] = true
		}
		if base == "" {
			base, _, _ = strings.Cut(folder, "/")
		}
	}
	return slices.Sorted(maps.Keys(found)), base, nil
}

// NameOf is the name of the kernel that a file describes, which need not be
// there; false where no pattern names it.
func NameOf(file string, patterns []string) (name string, ok bool) {
	base := ""
	for _, p := range patterns {
		pattern, negated := strings.CutPrefix(p, "!")
		if folder, _ := doublestar.SplitPattern(pattern); base == "" && !negated {
			base, _, _ = strings.Cut(folder, "/")
		}
		if file == pattern || doublestar.MatchUnvalidated(pattern, file) {
			ok = !negated
		}
	}
	if path.Clean(file) != file || !filepath.IsLocal(filepath.FromSlash(file)) {
		return "", false
	}
	return strings.TrimPrefix(path.Dir(file), base+"/"), ok
}

func loadOps(w *walker, base string) ([]*Op, error) {
	names, err := called(w, base, "op.yaml")
	if err != nil {
		return nil, err
	}
	root := w.root
	slices.Sort(names)
	var ops []*Op
	for _, file := range names {
		op, err := loadOp(root, file)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(ops, func(o *Op) bool { return o.Name == op.Name }); i >= 0 {
			return nil, &yamlfile.Error{File: file, Line: 1, Msg: fmt.Sprintf("op %q is already defined in %s", op.Name, ops[i].File)}
		}
		ops = append(ops, op)
	}
	return ops, nil
}

var word = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

func loadOp(root, file string) (*Op, error) {
	var f opFile
	lines, err := yamlfile.Read(filepath.Join(root, filepath.FromSlash(file)), file, &f)
	if err != nil {
		return nil, err
	}
	bad := func(key, format string, args ...any) error {
		return &yamlfile.Error{File: file, Line: lines[key], Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case !word.MatchString(f.Op):
		return nil, bad("op", "op needs a name of letters, digits, '_', '.' and '-'")
	case len(f.Sources) == 0:
		return nil, bad("sources", "sources needs at least one file")
	case len(f.Dims) == 0:
		return nil, bad("dims", "dims needs at least one dimension")
	case len(f.Cases) == 0:
		return nil, bad("cases", "cases needs at least one case")
	case len(f.Tolerance) == 0 && len(f.Exact) == 0:
		return nil, bad("tolerance", "tolerance needs relative_error or max_abs_error, or exact has to name the outputs that are compared exactly")
	}
	op := &Op{Name: f.Op, Dir: filepath.Dir(filepath.Join(root, filepath.FromSlash(file))), File: file,
		Sources: f.Sources, Dims: f.Dims, Tolerance: f.Tolerance, Lines: lines,
		Exact: f.Exact, InOut: f.InOut, Alignment: f.Alignment, Workspace: f.Workspace, Varies: f.Repeatable != nil && !*f.Repeatable}
	if err := op.checkTolerance(bad); err != nil {
		return nil, err
	}
	if err := op.checkTensors(bad); err != nil {
		return nil, err
	}
	if err := checkDims(f.Dims, bad); err != nil {
		return nil, err
	}
	if err := localFiles(op.Dir, root, f.Sources); err != nil {
		return nil, bad("sources", "%v", err)
	}
	if err := op.addCases("cases", f.Cases, bad); err != nil {
		return nil, err
	}
	if err := op.addCases("check_cases", f.CheckCases, bad); err != nil {
		return nil, err
	}
	if err := op.addReference(f.Reference, bad); err != nil {
		return nil, err
	}
	if f.Work != nil {
		err = op.addWork(*f.Work, bad)
	}
	return op, err
}

// tolerances are the errors that a result may have, and the most that each can
// sensibly be.
var tolerances = map[string]float64{"relative_error": 1, "max_abs_error": 1e300, "between_runs": 1}

func (op *Op) checkTolerance(bad func(key, format string, args ...any) error) error {
	for name, tol := range op.Tolerance {
		most, known := tolerances[name]
		switch {
		case !known:
			return bad("tolerance."+name, "unknown tolerance %q: the tolerances are relative_error, max_abs_error and, between runs that vary, between_runs", name)
		case !(tol > 0 && tol <= most) && most == 1:
			return bad("tolerance."+name, "tolerance %s must be above 0 and at most 1, not %v", name, tol)
		case !(tol > 0 && tol <= most):
			return bad("tolerance."+name, "tolerance %s must be above 0 and at most 1e300, not %v", name, tol)
		case name == "between_runs" && !op.Varies:
			return bad("tolerance."+name, "tolerance between_runs is for an op that says repeatable: false; of any other, two runs give the same bits")
		}
	}
	if op.Varies && op.Tolerance["between_runs"] == 0 {
		return bad("repeatable", "repeatable: false needs tolerance.between_runs, the largest relative error between two runs")
	}
	return nil
}

// checkTensors requires that what is declared of tensors is possible; their names are
// the op's own, which the harness holds them to.
func (op *Op) checkTensors(bad func(key, format string, args ...any) error) error {
	for key, names := range map[string][]string{"exact": op.Exact, "inout": op.InOut} {
		for i, name := range names {
			if at := fmt.Sprintf("%s[%d]", key, i); !word.MatchString(name) || slices.Index(names, name) != i {
				return bad(at, "%q is not the name of a tensor, given once", name)
			}
		}
	}
	if op.Alignment < 0 || op.Alignment > 256 || op.Alignment&(op.Alignment-1) != 0 {
		return bad("alignment", "alignment must be a power of two up to 256, not %d", op.Alignment)
	}
	if op.Workspace < 0 || op.Workspace > 1<<36 {
		return bad("workspace", "workspace must be a number of bytes up to 64 GiB, not %d", op.Workspace)
	}
	return nil
}

// checkDims requires names that a case can be written with, each once.
func checkDims(dims []string, bad func(key, format string, args ...any) error) error {
	for i, dim := range dims {
		at := fmt.Sprintf("dims[%d]", i)
		if !word.MatchString(dim) {
			return bad(at, "%q is not a name for a dimension: letters, digits, '_', '.' and '-'", dim)
		}
		if slices.Index(dims, dim) != i {
			return bad(at, "dims names %q twice", dim)
		}
	}
	return nil
}

// addCases takes the cases under a key, "cases" or "check_cases".
func (op *Op) addCases(key string, cases map[string]map[string]int64, bad func(key, format string, args ...any) error) error {
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if !word.MatchString(name) {
			return bad(key+"."+name, "%q is not a name for a case: letters, digits, '_', '.' and '-'", name)
		}
		if slices.ContainsFunc(op.Cases, func(c Case) bool { return c.Name == name }) {
			return bad(key+"."+name, "case %q is one of cases already, which are checked as well", name)
		}
		c := Case{Name: name, CheckOnly: key == "check_cases"}
		for _, dim := range op.Dims {
			size, ok := cases[name][dim]
			if !ok {
				return bad(key+"."+name, "case %q does not set dimension %s", name, dim)
			}
			if size < 1 || size > 1<<31 {
				return bad(key+"."+name, "case %q sets %s to %d: a size from 1 to 2^31 is needed", name, dim, size)
			}
			c.Dims = append(c.Dims, Dim{dim, size})
		}
		if len(cases[name]) != len(op.Dims) {
			return bad(key+"."+name, "case %q sets a dimension that dims does not list", name)
		}
		op.Cases = append(op.Cases, c)
	}
	return nil
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
	switch {
	case f.whole():
		if strings.TrimSpace(f.Retire[0].Reason) == "" {
			return nil, bad("retire", "", "a kernel that is retired needs a reason")
		}
		return nil, &retiredError{k.Name, f.Retire[0].Reason}
	case f.Op == "":
		return nil, bad("op", "", "op is missing: which computation does this kernel implement?")
	case len(f.Sources) == 0:
		return nil, bad("sources", "", "sources needs at least one .cu file")
	case len(f.Arch) == 0:
		return nil, bad("arch", "", "arch needs at least one architecture, such as sm_90")
	case len(f.Cases) == 0:
		return nil, bad("cases", "", "cases needs at least one case of the op")
	}
	for i, a := range f.Arch {
		at := fmt.Sprintf("arch[%d]", i)
		if !archPattern.MatchString(a) {
			return nil, bad(at, meantArch(a), "%q is not an architecture such as sm_90 or sm_90a", a)
		}
		if slices.Index(f.Arch, a) != i {
			return nil, bad(at, "", "arch names %q twice", a)
		}
	}
	if err := k.declare(f, bad); err != nil {
		return nil, err
	}
	if err := localFiles(k.Dir, root, f.Sources); err != nil {
		return nil, bad("sources", meantFile(err), "%v", err)
	}
	if err := k.checkFiles(root, bad); err != nil {
		return nil, err
	}
	if err := k.checkLibrary(root, bad); err != nil {
		return nil, err
	}
	for i, folder := range f.Include {
		if err := local(k.Dir, root, folder, "folder", fs.FileMode.IsDir); err != nil {
			return nil, bad(fmt.Sprintf("include[%d]", i), "", "%v", err)
		}
	}
	if r := nvccflags.Check(f.Flags); r != nil {
		return nil, bad(fmt.Sprintf("flags[%d]", r.Index), r.Hint, "%s", r.Msg)
	}
	return k, k.bind(f, ops, bad)
}

// checkFiles requires each file to be of the kind that its key says, since nvcc
// tells them apart by the ends of their names.
func (k *Kernel) checkFiles(root string, bad func(key, hint, format string, args ...any) error) error {
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

func (op *Op) caseNames() []string {
	var names []string
	for _, c := range op.Cases {
		names = append(names, c.Name)
	}
	return names
}

func didYouMean(word string, known []string) string {
	return yamlfile.DidYouMean(word, known, "known: "+strings.Join(known, ", "))
}

// localFiles requires every file to exist, as a regular file below root. Two of
// one name would overwrite each other's intermediates in the compiler's folder.
func localFiles(dir, root string, files []string) error {
	stems := map[string]bool{}
	for _, f := range files {
		stem := strings.TrimSuffix(path.Base(f), path.Ext(f))
		if stems[stem] {
			return fmt.Errorf("two files are called %q", stem)
		}
		stems[stem] = true
		if err := local(dir, root, f, "file", fs.FileMode.IsRegular); err != nil {
			return err
		}
	}
	return nil
}

// local requires something of this kind below root, with a name for nvcc.
func local(dir, root, name, kind string, is func(fs.FileMode) bool) error {
	full := filepath.Join(dir, filepath.FromSlash(name))
	if rel, err := filepath.Rel(root, full); err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("%q lies outside the repository", name)
	}
	if why := nvccflags.BadName(name); why != "" {
		return errors.New(why)
	}
	if strings.Contains(name, ",") {
		return fmt.Errorf("%q holds a comma, at which nvcc splits names", name)
	}
	if info, err := os.Stat(full); err != nil || !is(info.Mode()) {
		return &absentError{kind: kind, name: name, dir: dir}
	}
	return nil
}

// An absentError is a file that a manifest names and that is not there.
type absentError struct{ kind, name, dir string }

func (e *absentError) Error() string { return fmt.Sprintf("no %s %q in this folder", e.kind, e.name) }

// meantFile names the file of the same folder that a missing one most likely is.
func meantFile(err error) string {
	var absent *absentError
	if !errors.As(err, &absent) {
		return ""
	}
	entries, err := os.ReadDir(absent.dir)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != kernelName {
			names = append(names, e.Name())
		}
	}
	return yamlfile.DidYouMean(absent.name, names, "")
}
