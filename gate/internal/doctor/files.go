package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/project"
)

// project is what gate check would read here.
func (o Options) project() project.Options { return project.Options{Dir: o.Dir, Policy: o.Policy} }

func (o Options) policy(ctx context.Context) check {
	c := check{Name: "policy", Without: "nothing can be judged: gate check ends with exit code 2", Fix: "write one: the README shows how, and `gate schema metrics` lists what a rule can name"}
	_, path, name, err := project.Find(ctx, o.project())
	if err != nil {
		return c.is(broken, err.Error())
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.is(missing, path+" does not exist")
	case err != nil:
		return c.is(broken, err.Error())
	case !info.Mode().IsRegular():
		return c.is(broken, path+" is not a file")
	}
	if _, err := policy.Read(path, name); err != nil {
		c.Fix = "correct " + path
		return c.is(broken, err.Error())
	}
	return c.is(fine, path)
}

// storePath is the user's, else that of the policy; "" where there is none to
// read.
func (o Options) storePath(ctx context.Context) string {
	if o.Store != "" {
		if filepath.IsAbs(o.Store) || strings.Contains(o.Store, "://") {
			return o.Store
		}
		return filepath.Join(o.Dir, o.Store)
	}
	root, path, name, err := project.Find(ctx, o.project())
	if err != nil {
		return ""
	}
	p, err := policy.Read(path, name)
	if err != nil {
		return ""
	}
	return project.StoreOf(root, p)
}

func (o Options) store(ctx context.Context) check {
	c := check{
		Name:    "store",
		Without: "no recorded evidence: without a GPU every kernel is inconclusive, with one all are measured anew",
		Fix:     "gate baseline record, on a machine with a GPU",
	}
	path := o.storePath(ctx)
	if path == "" {
		return c.is(unknown, "the policy that names it cannot be read")
	}
	if strings.Contains(path, "://") {
		return c.is(unknown, path+" is not a folder: it is read when a check starts")
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
		return c.is(broken, dir+" is not a folder")
	}
	return c.is(fine, o.CacheDir)
}

// confinement says whether what a change brings along can be confined here.
func confinement() check {
	c := check{Name: "confinement", Without: "compiler, harness and ncu can read and write what this user can: every verdict says so",
		Fix: "a kernel from 6.7 on, started with landlock in its list of security modules; see gate/docs/security.md"}
	version, why := command.Landlock()
	if version == 0 {
		return c.is(missing, why)
	}
	return c.is(fine, fmt.Sprintf("Landlock version %d", version))
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
