// Package cache says what lies in gate's cache folder, and cleans it.
package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/exit"
)

// schema names the layout of a Listing.
const schema = "gate/cache/v1"

// lockName is the file by which a folder is known as gate's cache. Who uses the
// cache holds its lock together with others; who cleans holds it alone.
const lockName = "in-use.lock"

// A kind is what lies below one folder of the cache. Depth is the number of
// names that lead to one piece, which is there as a whole or not at all.
type kind struct {
	name, folder string
	depth        int
	ageless      bool // its age does not say whether it is needed
}

// evidence and what is unfinished of it cannot be made again by building.
const evidence, unfinished = "evidence", "unfinished"

var kinds = []kind{
	{name: "builds", folder: "build", depth: 2},
	{name: "harness", folder: "harness", depth: 1},
	{name: "inputs", folder: "data", depth: 2},
	{name: evidence, folder: "evidence", depth: 3},
	{name: unfinished, folder: "unfinished", depth: 3},
	{name: "stores", folder: "stores", depth: 1},
	{name: "bases", folder: "base", depth: 1},
	{name: "toolchains", folder: "toolchains", depth: 1, ageless: true},
}

// besides are names that the folder may hold and that are of no kind, such as a file
// system's lost+found.
var besides = []string{lockName, "tmp", "versions.json", "consistent.json", "lost+found"}

// A Listing is what the cache holds, or what was removed from it.
type Listing struct {
	Schema string `json:"schema"`
	Folder string `json:"folder"`
	Kinds  []Size `json:"kinds"`
}

// A Size is how much there is of a kind.
type Size struct {
	Kind   string `json:"kind"`
	Pieces int    `json:"pieces"`
	Bytes  int64  `json:"bytes"`
}

// Bytes is the size of everything.
func (l Listing) Bytes() int64 {
	var sum int64
	for _, s := range l.Kinds {
		sum += s.Bytes
	}
	return sum
}

// A Selection says what to remove.
type Selection struct {
	Before   time.Time // what was made or last used earlier; zero for everything
	Evidence bool      // evidence, too
}

// Use makes the folder where it is missing, and keeps it from being cleaned
// until release is called or the process ends.
func Use(ctx context.Context, dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	f, err := disk.OpenLock(filepath.Join(dir, lockName), 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	if err := disk.LockShared(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	return func() { f.Close() }, nil
}

// List measures the cache. A folder that is not there holds nothing.
func List(dir string) (Listing, error) {
	return each(dir, func(*os.Root, piece) (bool, error) { return true, nil })
}

// Clean removes what is selected and returns it. It touches nothing while
// another gate uses the cache, nothing of a folder that no gate has used or that
// holds what is somebody else's, and nothing that a link leads to.
func Clean(dir string, s Selection) (Listing, error) {
	f, err := disk.OpenExistingLock(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		l, err := List(dir)
		if err == nil && slices.ContainsFunc(l.Kinds, func(s Size) bool { return s.Pieces > 0 }) {
			err = exit.Usagef("gate check makes a folder its cache", "%s is not known to be a cache of gate's, so nothing in it is removed", dir)
		}
		return l, err
	}
	if err != nil {
		return Listing{}, fmt.Errorf("locking the cache: %w", err)
	}
	defer f.Close()
	free, err := disk.TryLock(f, false)
	if err != nil {
		return Listing{}, fmt.Errorf("locking the cache: %w", err)
	}
	if !free {
		return Listing{}, &exit.Error{Status: exit.Tool, Err: fmt.Errorf("another gate uses the cache %s", dir), Advice: "try again when it has ended"}
	}
	other, err := strange(dir)
	if err != nil {
		return Listing{}, fmt.Errorf("reading the cache: %w", err)
	}
	if other != "" {
		return Listing{}, exit.Usagef("name a folder of its own in GATE_CACHE", "%s holds %s, which is not gate's, so its build and other folders may not be either: nothing is removed", dir, other)
	}
	return each(dir, func(root *os.Root, p piece) (bool, error) {
		if (p.kind.name == evidence || p.kind.name == unfinished) && !s.Evidence || !s.Before.IsZero() && (p.kind.ageless || !p.used.Before(s.Before)) {
			return false, nil
		}
		return true, p.remove(root)
	})
}

// strange is the name of something in the folder that gate does not put there, ""
// for none: GATE_CACHE can name a home folder, whose build is the user's.
func strange(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		own := slices.ContainsFunc(kinds, func(k kind) bool { return k.folder == e.Name() })
		if !own && !slices.Contains(besides, e.Name()) && !disk.IsUnnamed(e.Name()) {
			return e.Name(), err
		}
	}
	return "", err
}

// A piece is a file or folder of the cache.
type piece struct {
	kind  kind
	path  string
	bytes int64
	used  time.Time // the latest time of anything in it
}

// remove also removes the folders that are empty without the piece.
func (p piece) remove(root *os.Root) error {
	err := root.RemoveAll(p.path)
	for dir := path.Dir(p.path); err == nil && dir != p.kind.folder && root.Remove(dir) == nil; {
		dir = path.Dir(dir)
	}
	return err
}

// each visits every piece and adds those up that visit takes. All paths are
// opened below the folder, so that no link leads out of it.
func each(dir string, visit func(*os.Root, piece) (bool, error)) (Listing, error) {
	out := Listing{Schema: schema, Folder: dir}
	root, err := os.OpenRoot(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("reading the cache: %w", err)
	}
	if err == nil {
		defer root.Close()
	}
	for _, k := range kinds {
		size := Size{Kind: k.name}
		if root != nil {
			if err := k.each(root, &size, visit); err != nil {
				return out, fmt.Errorf("the cache %s: %w", dir, err)
			}
		}
		out.Kinds = append(out.Kinds, size)
	}
	return out, nil
}

func (k kind) each(root *os.Root, size *Size, visit func(*os.Root, piece) (bool, error)) error {
	pieces, err := k.pieces(root)
	if err != nil {
		return err
	}
	for _, p := range pieces {
		taken, err := visit(root, p)
		if err != nil {
			return err
		}
		if taken {
			size.Pieces++
			size.Bytes += p.bytes
		}
	}
	return nil
}

// pieces lists what lies below the folder of a kind. A folder that is a link is
// not the cache's.
func (k kind) pieces(root *os.Root) ([]piece, error) {
	if info, err := root.Lstat(k.folder); err != nil || !info.IsDir() {
		return nil, nil
	}
	var out []piece
	err := fs.WalkDir(root.FS(), k.folder, func(name string, d fs.DirEntry, err error) error {
		depth := strings.Count(name, "/")
		if errors.Is(err, fs.ErrNotExist) { // another gate has removed it meanwhile
			return nil
		}
		if err != nil || depth == 0 || d.IsDir() && depth < k.depth || depth == 1 && isLock(name) {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if depth <= k.depth {
			out = append(out, piece{kind: k, path: name})
		}
		p := &out[len(out)-1]
		if info.Mode().IsRegular() {
			p.bytes += info.Size()
		}
		if info.ModTime().After(p.used) {
			p.used = info.ModTime()
		}
		return nil
	})
	return out, err
}

// isLock holds for the files by which gates wait for each other: one that is
// removed while it is held no longer keeps anybody out.
func isLock(name string) bool {
	return path.Base(name) == "lock" || path.Base(name) == ".lock"
}
