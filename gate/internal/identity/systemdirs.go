package identity

import (
	"path/filepath"
	"strings"
)

// defaultSystemDirs are where a Unix system keeps headers that no project owns.
var defaultSystemDirs = []string{"/usr/include", "/usr/lib", "/usr/lib64", "/usr/local/include"}

// SystemDirs returns an isSystem for HostID: true for absolute names inside the given folders, with symbolic links in
// them resolved too, and inside the system's own, and for the compiler's "<built-in>". A relative name belongs to the
// project.
func SystemDirs(dirs ...string) func(file string) bool {
	var prefixes []string
	for _, d := range append(dirs, defaultSystemDirs...) {
		if !filepath.IsAbs(d) {
			continue
		}
		prefixes = append(prefixes, folderPrefix(d))
		if real, err := filepath.EvalSymlinks(d); err == nil {
			prefixes = append(prefixes, folderPrefix(real))
		}
	}
	return func(file string) bool {
		if !filepath.IsAbs(file) {
			return strings.HasPrefix(file, "<")
		}
		file = filepath.Clean(file)
		for _, p := range prefixes {
			if strings.HasPrefix(file, p) {
				return true
			}
		}
		return false
	}
}

func folderPrefix(dir string) string {
	return strings.TrimSuffix(filepath.Clean(dir), "/") + "/"
}
