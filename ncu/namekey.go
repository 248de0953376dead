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

// NameKey returns the part of a kernel's name that survives a rebuild: hashes,
// clone numbers, version namespaces and source lines are taken out and runs of
// white space become one space. Different kernels can share a key; Match keeps
// them apart by order.
func NameKey(kernel string) string {
	key := strings.Join(strings.Fields(kernel), " ")
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
