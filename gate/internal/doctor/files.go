package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// files examines the policy file, the store and the cache.
func (o Options) files(r *Report) {
	r.add(o.policy())
	r.add(o.store())
	r.add(o.cache())
}

func (o Options) policy() Check {
	c := Check{Name: "policy", Without: "nothing can be judged: gate check ends with exit code 2", Fix: "gate init"}
	switch info, err := os.Stat(o.PolicyPath); {
	case o.PolicyPath == "":
		c.Status, c.Detail = Missing, "no policy file is named"
	case errors.Is(err, fs.ErrNotExist):
		c.Status, c.Detail = Missing, o.PolicyPath+" does not exist"
	case err != nil:
		c.Status, c.Detail = Broken, err.Error()
	case !info.Mode().IsRegular():
		c.Status, c.Detail = Broken, o.PolicyPath+" is no file"
	default:
		c.Status, c.Detail = OK, o.PolicyPath
		if err := o.readPolicy(); err != nil {
			c.Status, c.Detail, c.Fix = Broken, err.Error(), "correct "+o.PolicyPath
		}
	}
	return c
}

func (o Options) readPolicy() error {
	if o.CheckPolicy != nil {
		return o.CheckPolicy(o.PolicyPath)
	}
	return readable(o.PolicyPath)
}

func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

func (o Options) store() Check {
	c := Check{
		Name:    "store",
		Without: "no recorded evidence: without a GPU every kernel is inconclusive, with one all are measured anew",
		Fix:     "gate baseline record, on a machine with a GPU",
	}
	path := o.StorePath
	if u, err := url.Parse(path); err == nil && strings.Contains(path, "://") {
		if u.Scheme != "file" {
			c.Status, c.Detail = Unknown, u.Redacted()+" is elsewhere and was not asked"
			c.Fix = "gate baseline list asks it"
			return c
		}
		path = u.Path
	}
	if path == "" {
		c.Status, c.Detail = Missing, "no store is named"
		return c
	}
	switch empty, err := emptyFolder(path); {
	case errors.Is(err, fs.ErrNotExist):
		c.Status, c.Detail = Missing, path+" does not exist"
	case err != nil:
		c.Status, c.Detail = Broken, err.Error()
	case empty:
		c.Status, c.Detail = Missing, path+" is empty"
	case unix.Access(path, unix.W_OK) != nil:
		c.Status, c.Detail = OK, path+" (read only: nothing can be recorded)"
	default:
		c.Status, c.Detail = OK, path
	}
	return c
}

func emptyFolder(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	_, err = f.ReadDir(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

func (o Options) cache() Check {
	c := Check{Name: "cache", Without: "every run builds every kernel anew", Fix: "export GATE_CACHE=/a/folder/that/can/be/written"}
	if o.CacheDir == "" {
		c.Status, c.Detail = Missing, "no cache folder is named"
		return c
	}
	dir := existingParent(o.CacheDir)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		c.Status, c.Detail = Broken, fmt.Sprintf("%s cannot be written: %v", dir, err)
		return c
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		c.Status, c.Detail = Broken, dir+" is no folder"
		return c
	}
	c.Status, c.Detail = OK, o.CacheDir
	return c
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
