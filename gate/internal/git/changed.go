package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A Comparison is what the working tree has of the files of a commit.
type Comparison struct {
	// Changed lists what differs by paths from the root, files that are neither
	// tracked nor ignored included. A submodule that cannot be compared, or a
	// folder that is a repository of its own, is listed itself.
	Changed []string

	root string
	held map[string]file // the commit's, by path from the root, those of submodules included

	converted []string // folders in which git converts otherwise than at the commit
}

// Compare reads every file's content: the index can be told to overlook a
// file, and the configuration a submodule, a mode or a folder. A repository is
// asked about a commit once.
func (r *Repo) Compare(ctx context.Context, commit string) (*Comparison, error) {
	if c := r.compared[commit]; c != nil {
		return c, nil
	}
	c, err := r.compare(ctx, &r.own, commit)
	if err != nil {
		return nil, err
	}
	slices.Sort(c.Changed)
	c.Changed = slices.Compact(c.Changed)
	if r.compared == nil {
		r.compared = map[string]*Comparison{}
	}
	r.compared[commit] = c
	return c, nil
}

// Knows reports whether git can tell what the commit has of a file: it has the
// file, or the file was added since, by itself or with a whole submodule. It
// knows nothing of a file that is ignored.
func (c *Comparison) Knows(file string) bool {
	if _, held := c.held[file]; held {
		return true
	}
	for ; file != "." && file != "/"; file = path.Dir(file) {
		if _, changed := slices.BinarySearch(c.Changed, file); changed {
			return true
		}
	}
	return false
}

// Same reports whether the file is still the one of this SHA-256, and has the
// content that it has in the commit.
func (c *Comparison) Same(file, sha string) (bool, error) {
	f, ok := c.held[file]
	if !ok {
		return false, nil
	}
	full := filepath.Join(c.root, file)
	info, err := os.Stat(full)
	if err != nil {
		return false, err
	}
	blob := newHash(f.id, info.Size())
	sum, err := digest(full, sha256.New(), blob)
	return err == nil && sum == sha && (hex.EncodeToString(blob.Sum(nil)) == f.id || f.sha == sha), err
}

// Has reports whether this is the content that the commit has of a file, or to
// which its pointer of git-lfs points. What lies in the working tree does not
// matter: it may have been replaced since the comparison.
func (c *Comparison) Has(file string, data []byte) bool {
	f, ok := c.held[file]
	if !ok || f.mode == symlink {
		return false
	}
	blob := newHash(f.id, int64(len(data)))
	blob.Write(data)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(blob.Sum(nil)) == f.id || hex.EncodeToString(sum[:]) == f.sha
}

func (r *Repo) compare(ctx context.Context, p *place, commit string) (*Comparison, error) {
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
	c := &Comparison{root: p.root, held: map[string]file{}}
	known := map[string]bool{}
	for _, f := range files {
		known[f.path] = true
	}
	for _, name := range names {
		name = strings.TrimSuffix(name, "/")
		if _, err := os.Lstat(filepath.Join(p.root, name)); err == nil && !known[name] {
			c.Changed = append(c.Changed, name)
		}
	}
	own := slices.Clone(c.Changed) // without what lies in submodules
	for _, f := range files {
		if sub := subs[f.path]; sub != nil {
			if err := r.compareBelow(ctx, c, p, sub, f); err != nil {
				return nil, err
			}
		}
	}
	files = slices.DeleteFunc(files, func(f file) bool { return f.mode == gitlink })
	for _, f := range files {
		c.held[f.path] = f
	}
	differ, smudged, err := r.notSmudged(ctx, p, differing(ctx, p.root, files))
	for _, f := range smudged {
		c.held[f.path] = f
	}
	for _, f := range differ {
		own, c.Changed = append(own, f.path), append(c.Changed, f.path)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	dirs, err := r.conversions(ctx, p, own, files)
	c.converted = append(c.converted, dirs...)
	return c, err
}

// compareBelow adds what a submodule is to a comparison.
func (r *Repo) compareBelow(ctx context.Context, c *Comparison, p, sub *place, f file) error {
	if entries, _ := os.ReadDir(filepath.Join(p.root, f.path)); len(entries) == 0 {
		// Not checked out, as git leaves it unless it is asked.
		var out bytes.Buffer
		err := p.ask(ctx, &out, "ls-files", "--stage", "-z", "--", f.path)
		if err == nil && !strings.HasPrefix(out.String(), gitlink+" "+f.id+" ") {
			c.Changed = append(c.Changed, f.path)
		}
		return err
	}
	if len(gitOf(sub.root)) == 0 {
		c.Changed = append(c.Changed, f.path)
		return nil
	}
	below, err := r.compare(ctx, sub, f.id)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.Changed = append(c.Changed, f.path)
		return nil
	}
	for _, name := range below.Changed {
		c.Changed = append(c.Changed, f.path+"/"+name)
	}
	for _, dir := range below.converted {
		c.converted = append(c.converted, path.Join(f.path, dir))
	}
	for name, held := range below.held {
		c.held[f.path+"/"+name] = held
	}
	return nil
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
// What it reads is also written to others.
func digest(path string, sum hash.Hash, others ...io.Writer) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	_, err = io.Copy(io.MultiWriter(append(others, sum)...), in)
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
