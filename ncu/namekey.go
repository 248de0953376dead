package ncu

import (
	"regexp"
	"strings"
)

// The parts of kernel names that change from build to build while the code
// stays the same, each with a text that must occur for it to be worth a look.
var unstable = []struct {
	mark    string
	pattern *regexp.Regexp
	with    string
}{
	// nvcc: entities of an anonymous namespace, static functions and symbols of
	// internal linkage carry a hash of path and content. A mangled name has the
	// length of the part in front.
	{"_GLOBAL__N__", regexp.MustCompile(`\d*_GLOBAL__N__[0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}(?:_\d+)?`), "_GLOBAL__N_"},
	{"_INTERNAL_", regexp.MustCompile(`\d*_INTERNAL_(?:[0-9a-f]{8}_)?\d+_\w+?_[0-9a-f]{8}(?:_\d+)?`), "_INTERNAL_"},
	{"__nv_static_", regexp.MustCompile(`__nv_static_\d+__[0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}(?:_\d+)?_`), "__nv_static_"},
	// CUB and Thrust put their version and the list of architectures into a
	// namespace, from CCCL 3.5 on one of the same name in both.
	{"CUB_", regexp.MustCompile(`\d*CUB_\d{6}(?:_SM)?(?:_\d+)*(?:_NS)?`), "_V"},
	{"THRUST_", regexp.MustCompile(`\d*THRUST_\d{6}(?:_SM)?(?:_\d+)*(?:_NS)?`), "_V"},
	{"_V_", regexp.MustCompile(`\d*_V_\d{6}_SM(?:_\d+)+(?:_NS)?`), "_V"},
	// The compiler numbers clones of a function.
	{"$", regexp.MustCompile(`\$\d+`), ""},
	// Numba appends a counter and the encoded compile options.
	{"[v", regexp.MustCompile(`\[v\d+(?:,\w+)?\]`), ""},
	// KernelAbstractions and CUDA.jl append the source file and the line.
	{"_FILE_", regexp.MustCompile(`__FILE_\w+_L\d+`), ""},
}

// NameKey returns the part of a kernel's name that survives a rebuild and a new
// release of ncu: hashes, clone numbers, version namespaces and source lines are
// taken out, runs of white space become one space, and the types in front of
// numbers in template arguments, of which newer releases print fewer, are left
// out. Different kernels can share a key; Match keeps them apart by order.
func NameKey(kernel string) string {
	key := dropCasts(strings.Join(strings.Fields(kernel), " "))
	for _, u := range unstable {
		if strings.Contains(key, u.mark) {
			key = u.pattern.ReplaceAllString(key, u.with)
		}
	}
	if key == "" {
		return kernel
	}
	return key
}

// A span is a part of a text.
type span struct{ start, end int }

// dropCasts turns "k<(int)3, (ns::Mode)1, (int)-4>" into "k<3, 1, -4>".
func dropCasts(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	var open []int
	var casts []span
	for i := range len(s) {
		switch {
		case s[i] == '(':
			open = append(open, i)
		case s[i] == ')' && len(open) > 0:
			c := span{open[len(open)-1], i + 1}
			open = open[:len(open)-1]
			if !isCast(s, c) {
				continue
			}
			for n := len(casts); n > 0 && casts[n-1].start > c.start; n-- {
				casts = casts[:n-1] // inside of this one
			}
			casts = append(casts, c)
		}
	}
	var b strings.Builder
	copied := 0
	for _, c := range casts {
		b.WriteString(s[copied:c.start])
		copied = c.end
	}
	b.WriteString(s[copied:])
	return b.String()
}

// isCast reports whether parentheses hold the type of a template argument: they
// stand at its beginning and a number follows.
func isCast(s string, c span) bool {
	number := strings.TrimPrefix(s[c.end:], "-")
	return c.start > 0 && strings.IndexByte("< ,", s[c.start-1]) >= 0 && number != "" && number[0] >= '0' && number[0] <= '9'
}
