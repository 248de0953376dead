package git

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// A Tree is a folder of the cache that holds the files of a commit. Every run
// that compares with the commit shares it, and none removes it.
type Tree struct {
	Dir  string
	Gaps []Gap
}

// A Gap is a submodule whose files are not in the tree, and why.
type Gap struct{ Path, Why, Hint string }

const (
	mostTrees = 8 // more stay only while they are used within a day
	oldest    = 14 * 24 * time.Hour
)

// Tree brings the files of a commit, and of its submodules, into the cache. A
// tree that is there already is compared with the commit and made again if
// anything in it differs.
func (r *Repo) Tree(ctx context.Context, commit string) (Tree, error) {
	files, gaps, err := r.whole(ctx, &r.own, commit, "")
	if err != nil {
		return Tree{}, fmt.Errorf("reading the base: %w", err)
	}
	t := Tree{filepath.Join(r.shelf(), treeName(commit, gaps)), gaps}
	lock, err := r.lock(ctx, "lock", disk.LockShared)
	if err != nil {
		return Tree{}, err
	}
	defer func() { lock.Close() }()
	if intact(ctx, t.Dir, files) {
		return t, os.Chtimes(t.Dir, time.Time{}, time.Now())
	}
	lock.Close()
	if lock, err = r.lock(ctx, "lock", disk.Lock); err != nil {
		return Tree{}, err
	}
	sweep(r.shelf(), t.Dir)
	if !intact(ctx, t.Dir, files) {
		err = r.makeTree(ctx, t, files)
	}
	if err == nil {
		err = os.Chtimes(t.Dir, time.Time{}, time.Now())
	}
	if err != nil {
		return Tree{}, fmt.Errorf("reading the base: %w", err)
	}
	return t, nil
}

// lock guards the shelf: shared while a tree is looked at, exclusive while
// something is made or removed. It ends when the file is closed, or with the
// process.
func (r *Repo) lock(ctx context.Context, name string, take func(context.Context, *os.File) error) (*os.File, error) {
	if err := os.MkdirAll(r.shelf(), 0o755); err != nil {
		return nil, fmt.Errorf("locking the bases in the cache: %w", err)
	}
	lock, err := disk.OpenLock(filepath.Join(r.shelf(), name), 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the bases in the cache: %w", err)
	}
	if err := take(ctx, lock); err != nil {
		lock.Close()
		return nil, fmt.Errorf("locking the bases in the cache: %w", err)
	}
	return lock, nil
}

// treeName is the folder of a commit. One with gaps is another, since a
// submodule may be there the next time.
func treeName(commit string, gaps []Gap) string {
	if len(gaps) == 0 {
		return commit
	}
	sum := sha256.New()
	for _, g := range gaps {
		fmt.Fprintf(sum, "%s\x00", g.Path)
	}
	return fmt.Sprintf("%s-%x", commit, sum.Sum(nil)[:6])
}

// whole lists a commit's files and, in the place of its submodules, theirs.
func (r *Repo) whole(ctx context.Context, p *place, commit, prefix string) (all []file, gaps []Gap, err error) {
	files, err := r.list(ctx, p, commit)
	if err != nil {
		return nil, nil, err
	}
	subs, err := r.submodules(ctx, p, commit, files)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		path := f.path
		f.path = prefix + path
		if !harmless(f.path) {
			return nil, nil, fmt.Errorf("commit %.12s has a file with the name %q, which no checkout may write", commit, f.path)
		}
		if f.mode != gitlink {
			all = append(all, f)
			continue
		}
		below, lacks, err := r.whole(ctx, subs[path], f.id, f.path+"/")
		if ctx.Err() != nil {
			return nil, nil, err
		}
		if err != nil {
			gaps = append(gaps, Gap{f.path, fmt.Sprintf("the submodule %s cannot be read: %v", f.path, err), "git submodule update --init --recursive"})
		}
		all, gaps = append(all, below...), append(gaps, lacks...)
	}
	return all, gaps, nil
}

// harmless reports whether a name stays below the folder it is written to, and
// is none that makes a folder a repository.
func harmless(path string) bool {
	parts := strings.Split(path, "/")
	return filepath.IsLocal(path) && filepath.Clean(path) == path &&
		!slices.ContainsFunc(parts, func(part string) bool { return strings.EqualFold(part, ".git") })
}

// intact reports whether a folder holds these files and no other.
func intact(ctx context.Context, dir string, files []file) bool {
	known := map[string]bool{}
	for _, f := range files {
		known[filepath.Join(dir, f.path)] = true
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !known[path] {
			err = fmt.Errorf("%q is not of the commit", path)
		}
		return err
	})
	return err == nil && len(differing(ctx, dir, files)) == 0 && ctx.Err() == nil
}

// makeTree writes the files into a folder of another name, so that no run sees
// a part of them.
func (r *Repo) makeTree(ctx context.Context, t Tree, files []file) error {
	tmp, err := disk.TempDir(r.cache, "base")
	if err != nil {
		return err
	}
	defer disk.RemoveTemp(tmp)
	made := filepath.Join(tmp, "tree")
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(made) // no link of the commit leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	for _, g := range t.Gaps {
		if err := root.MkdirAll(g.Path, 0o755); err != nil {
			return err
		}
	}
	for len(files) > 0 {
		n := slices.IndexFunc(files, func(f file) bool { return f.from != files[0].from })
		if n < 0 {
			n = len(files)
		}
		if err := r.writeAll(ctx, root, files[:n]); err != nil {
			return err
		}
		files = files[n:]
	}
	if err := os.Rename(t.Dir, filepath.Join(tmp, "damaged")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(made, t.Dir)
}

// writeAll writes files of one place as they are stored: what a filter or an
// attribute would make of them depends on the machine, and may be a program.
func (r *Repo) writeAll(ctx context.Context, root *os.Root, files []file) error {
	p := files[0].from
	sizes, err := r.sizes(ctx, p, files)
	if err != nil {
		return err
	}
	var missing []string
	for _, f := range files {
		if _, ok := sizes[f.id]; !ok {
			missing = append(missing, f.id)
		}
	}
	if len(missing) > 0 {
		if err := r.fetch(ctx, p, missing); err != nil {
			return fmt.Errorf("%d files are not in this clone, and %w", len(missing), err)
		}
	}
	return r.blobs(ctx, p, files, func(f file, body io.Reader) error { return f.write(root, body) })
}

func (f file) write(root *os.Root, body io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	switch f.mode {
	case symlink:
		to, err := io.ReadAll(body)
		return errors.Join(err, root.Symlink(string(to), f.path))
	case executable:
		mode = 0o755
	}
	out, err := root.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, body)
	return errors.Join(err, out.Close())
}

// kept are the names of trees, and of the folders of objects, on the shelf. What
// has another name, no gate made.
var kept = regexp.MustCompile(`^(([0-9a-f]{40}|[0-9a-f]{64})(-[0-9a-f]{12})?|objects-sha(1|256)\.git)$`)

// sweep removes what has not been used for long.
// Whoever uses a folder has said so in its time: no run lasts a day, so that
// one which was used within a day may still be in use.
func sweep(shelf, keep string) {
	type used struct {
		path string
		age  time.Duration
	}
	var folders []used
	entries, _ := os.ReadDir(shelf)
	for _, e := range entries {
		path := filepath.Join(shelf, e.Name())
		if info, err := e.Info(); err == nil && e.IsDir() && path != keep && kept.MatchString(e.Name()) {
			folders = append(folders, used{path, time.Since(info.ModTime())})
		}
	}
	slices.SortFunc(folders, func(a, b used) int { return int(a.age - b.age) })
	for i, f := range folders {
		if f.age > oldest || i >= mostTrees && f.age > 24*time.Hour {
			os.RemoveAll(f.path)
		}
	}
}
