package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Changed lists what differs between a commit and the working tree by paths
// from the root, files that are neither tracked nor ignored included. Every
// file's content is read: the index can be told to overlook a file, and the
// configuration a submodule, a mode or a folder. A submodule that cannot be
// compared, or a folder that is a repository of its own, is listed itself.
func (r *Repo) Changed(ctx context.Context, commit string) ([]string, error) {
	changed, err := r.changed(ctx, &r.own, commit)
	slices.Sort(changed)
	return slices.Compact(changed), err
}

func (r *Repo) changed(ctx context.Context, p *place, commit string) ([]string, error) {
	files, err := r.list(ctx, p, commit)
	if err != nil {
		return nil, err
	}
	names, err := p.names(ctx)
	if err != nil {
		return nil, err
	}
	subs, err := r.submodules(ctx, p, commit, files)
	if err != nil {
		return nil, err
	}
	var changed []string
	known := map[string]bool{}
	for _, f := range files {
		known[f.path] = true
	}
	for _, name := range names {
		name = strings.TrimSuffix(name, "/")
		if _, err := os.Lstat(filepath.Join(p.root, name)); err == nil && !known[name] {
			changed = append(changed, name)
		}
	}
	for _, f := range files {
		if sub := subs[f.path]; sub != nil {
			below, err := r.changedBelow(ctx, p, sub, f)
			if err != nil {
				return nil, err
			}
			changed = append(changed, below...)
		}
	}
	files = slices.DeleteFunc(files, func(f file) bool { return f.mode == gitlink })
	differ, err := r.notSmudged(ctx, p, differing(ctx, p.root, files))
	for _, f := range differ {
		changed = append(changed, f.path)
	}
	return changed, errors.Join(err, ctx.Err())
}

// changedBelow lists what differs in a submodule.
func (r *Repo) changedBelow(ctx context.Context, p, sub *place, f file) ([]string, error) {
	if entries, _ := os.ReadDir(filepath.Join(p.root, f.path)); len(entries) == 0 {
		// Not checked out, as git leaves it unless it is asked.
		var out bytes.Buffer
		err := p.ask(ctx, &out, "ls-files", "--stage", "-z", "--", f.path)
		if strings.HasPrefix(out.String(), gitlink+" "+f.id+" ") || err != nil {
			return nil, err
		}
		return []string{f.path}, nil
	}
	if len(gitOf(sub.root)) == 0 {
		return []string{f.path}, nil
	}
	below, err := r.changed(ctx, sub, f.id)
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return []string{f.path}, nil
	}
	for i := range below {
		below[i] = f.path + "/" + below[i]
	}
	return below, nil
}

// ask asks about the working tree of a place, which is where it lies, whatever
// its configuration says.
func (p *place) ask(ctx context.Context, out io.Writer, args ...string) error {
	return call{dir: p.root, out: out, repo: []string{"--git-dir=" + p.gits[0], "--work-tree=" + p.root}, args: args}.run(ctx)
}

// names are the names that the index knows, and those of files that are
// neither in it nor ignored.
func (p *place) names(ctx context.Context) ([]string, error) {
	var out bytes.Buffer
	if err := p.ask(ctx, &out, "ls-files", "--cached", "--others", "--exclude-standard", "-z"); err != nil {
		return nil, err
	}
	return strings.FieldsFunc(out.String(), func(c rune) bool { return c == 0 }), nil
}

// differing are the files that are not in the folder as the commit has them.
func differing(ctx context.Context, root string, files []file) []file {
	same := make([]bool, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.NumCPU(), len(files)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				same[i] = files[i].in(root)
			}
		})
	}
	wg.Wait()
	var differ []file
	for i, f := range files {
		if !same[i] {
			differ = append(differ, f)
		}
	}
	return differ
}

// in reports whether the folder holds the file as the commit has it. One that
// cannot be read is not the same.
func (f file) in(root string) bool {
	path := filepath.Join(root, f.path)
	info, err := os.Lstat(path)
	if err != nil || !f.like(info) {
		return false
	}
	if f.mode == symlink {
		target, err := os.Readlink(path)
		sum := newHash(f.id, int64(len(target)))
		io.WriteString(sum, target)
		return err == nil && hex.EncodeToString(sum.Sum(nil)) == f.id
	}
	sum, err := digest(path, newHash(f.id, info.Size()))
	return err == nil && sum == f.id
}

// digest is the sum of a file's content, after what the hash holds already.
func digest(path string, sum hash.Hash) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	_, err = io.Copy(sum, in)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// like reports whether a file is of the kind that the commit has.
func (f file) like(info os.FileInfo) bool {
	if f.mode == symlink {
		return info.Mode().Type() == os.ModeSymlink
	}
	return info.Mode().IsRegular() && info.Mode()&0o100 != 0 == (f.mode == executable)
}

// DiffLines are the lines of a file that differ from a commit, as "-…" and
// "+…", at most so many.
func (r *Repo) DiffLines(ctx context.Context, commit, path string, most int) []string {
	var base, out bytes.Buffer
	files, err := r.list(ctx, &r.own, commit, path)
	if err == nil {
		err = r.blobs(ctx, &r.own, files, func(_ file, body io.Reader) error { _, err := base.ReadFrom(body); return err })
	}
	if err != nil {
		return nil
	}
	now := filepath.Join(r.Root, path)
	if _, err := os.Lstat(now); err != nil {
		now = os.DevNull
	}
	err = r.read(ctx, &r.own, len(commit), &base, &out, "diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--text", "-U0", "--", "-", now)
	if err != nil && !saidNo(err) {
		return nil
	}
	var lines []string
	_, text, _ := strings.Cut(out.String(), "\n@@")
	for l := range strings.SplitSeq(text, "\n") {
		if l == "" || l[0] != '+' && l[0] != '-' {
			continue
		}
		if len(lines) == most {
			return append(lines, "… and more")
		}
		lines = append(lines, l)
	}
	return lines
}
