package policy

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// selects reports whether patterns select a name: some pattern names it and no
// later "!" pattern takes it away. No pattern means every name.
func selects(patterns []string, is func(pattern string) bool) bool {
	if len(patterns) == 0 {
		return true
	}
	selected := strings.HasPrefix(patterns[0], "!")
	for _, p := range patterns {
		pattern, negated := strings.CutPrefix(p, "!")
		if is(pattern) {
			selected = !negated
		}
	}
	return selected
}

// named matches a path such as a kernel's name, or a single word.
func named(name string) func(string) bool {
	return func(pattern string) bool {
		ok, _ := doublestar.Match(pattern, name)
		return ok || pattern == name
	}
}

// An Entry is a __global__ function: as it is written in the source, with its
// parameters, and its bare name.
type Entry struct{ Name, Short string }

// called matches a function by either of its names, as entries: of a
// kernel.yaml does.
func called(e Entry) func(string) bool {
	return func(pattern string) bool {
		for _, name := range []string{e.Name, e.Short} {
			if ok, _ := path.Match(pattern, name); ok || pattern == name {
				return true
			}
		}
		return false
	}
}
