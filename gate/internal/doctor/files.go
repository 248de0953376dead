package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func (o Options) policy() check {
	c := check{Name: "policy", Without: "nothing can be judged: gate check ends with exit code 2", Fix: "gate init"}
	info, err := os.Stat(o.PolicyPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.is(missing, o.PolicyPath+" does not exist")
	case err != nil:
		return c.is(broken, err.Error())
	case !info.Mode().IsRegular():
		return c.is(broken, o.PolicyPath+" is no file")
	}
	if err := o.CheckPolicy(o.PolicyPath); err != nil {
		c.Fix = "correct " + o.PolicyPath
		return c.is(broken, err.Error())
	}
	return c.is(fine, o.PolicyPath)
}

func (o Options) store() check {
	c := check{
		Name:    "store",
		Without: "no recorded evidence: without a GPU every kernel is inconclusive, with one all are measured anew",
		Fix:     "gate baseline record, on a machine with a GPU",
	}
	path := o.StorePath
	if u, err := url.Parse(path); err == nil && strings.Contains(path, "://") {
		if u.Scheme != "file" {
			c.Fix = "gate baseline list asks it"
			return c.is(unknown, u.Redacted()+" is elsewhere and was not asked")
		}
		path = u.Path
	}
	switch inside, err := os.ReadDir(path); {
	case errors.Is(err, fs.ErrNotExist):
		return c.is(missing, path+" does not exist")
	case err != nil:
		return c.is(broken, err.Error())
	case len(inside) == 0:
		return c.is(missing, path+" is empty")
	case unix.Access(path, unix.W_OK) != nil:
		return c.is(fine, path+" (read only: nothing can be recorded)")
	}
	return c.is(fine, path)
}

func (o Options) cache() check {
	c := check{Name: "cache", Without: "every run builds every kernel anew", Fix: "export GATE_CACHE=/a/folder/that/can/be/written"}
	dir := existingParent(o.CacheDir)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return c.is(broken, fmt.Sprintf("%s cannot be written: %v", dir, err))
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return c.is(broken, dir+" is no folder")
	}
	return c.is(fine, o.CacheDir)
}

// existingParent is the path itself or the nearest parent that exists.
func existingParent(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}
