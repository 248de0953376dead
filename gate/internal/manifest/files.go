package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kernelgate/gate/gate/internal/nvccflags"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

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
