package manifest

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

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
	if err := f.lacks(bad); err != nil {
		return nil, err
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

// lacks refuses a file without what every op has.
func (f *opFile) lacks(bad func(key, format string, args ...any) error) error {
	switch {
	case !word.MatchString(f.Op):
		return bad("op", "op needs a name of letters, digits, '_', '.' and '-'")
	case len(f.Sources) == 0:
		return bad("sources", "sources needs at least one file")
	case len(f.Dims) == 0:
		return bad("dims", "dims needs at least one dimension")
	case len(f.Cases) == 0:
		return bad("cases", "cases needs at least one case")
	case len(f.Tolerance) == 0 && len(f.Exact) == 0:
		return bad("tolerance", "tolerance needs relative_error or max_abs_error, or exact has to name the outputs that are compared exactly")
	}
	return nil
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

func (op *Op) caseNames() []string {
	var names []string
	for _, c := range op.Cases {
		names = append(names, c.Name)
	}
	return names
}
