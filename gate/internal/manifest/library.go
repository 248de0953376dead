package manifest

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
)

// A Library is what a reference calls: a library that is installed on the
// machine that measures. It is known by its declared versions, so that a machine
// without it finds what was measured of it.
type Library struct {
	// Find is a Python program that prints, as one JSON object, which versions are
	// installed and how the sources are compiled and linked with them.
	Find     string            `yaml:"find"`
	Versions map[string]string `yaml:"versions"`
}

// Declared reports whether a kernel.yaml names a library.
func (l Library) Declared() bool { return l.Find != "" || len(l.Versions) > 0 }

var versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}$`)

// checkLibrary checks the form of a reference to a library: host code without
// device code of its own.
func (k *Kernel) checkLibrary(root string, bad func(key, hint, format string, args ...any) error) error {
	if !k.Library.Declared() {
		return nil
	}
	if len(k.Entries)+len(k.Include)+len(k.Objects)+len(k.Libraries) > 0 {
		return bad("library", "", "a library has neither entries nor include, objects or libraries: its sources only call it")
	}
	if err := local(k.Dir, root, k.Library.Find, "file", fs.FileMode.IsRegular); err != nil {
		return bad("library.find", "", "%v", err)
	}
	if len(k.Library.Versions) == 0 {
		return bad("library.versions", "", "versions needs at least one name and version: they are what the library is known by")
	}
	for _, name := range slices.Sorted(maps.Keys(k.Library.Versions)) {
		if version := k.Library.Versions[name]; !word.MatchString(name) || !versionPattern.MatchString(version) {
			return bad("library.versions."+name, "", "%q: %q is not a name with a version such as torch: 2.11.0+cu130", name, version)
		}
	}
	return nil
}
