package git

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// A file is one entry of a commit: a blob, or the commit of a submodule.
type file struct {
	path, mode, id string
	from           *place
	sha            string // SHA-256 of what the folder holds in the place of a pointer of git-lfs; "" for any other
}

const (
	gitlink    = "160000"
	symlink    = "120000"
	executable = "100755"
)

// shelf is the folder of the cache that this package writes in.
func (r *Repo) shelf() string { return filepath.Join(r.cache, "base") }

// vault is a bare repository of gate's own, in which objects are read. Those
// of the user's are seen through alternates, and no configuration of the
// user's repository, no filter and no fetching in passing comes along.
// Whatever has to be fetched is fetched into it.
func (r *Repo) vault(ctx context.Context, format int) (string, error) {
	config, name := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n", "objects-sha1.git"
	if format == 2*sha256.Size {
		config, name = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n", "objects-sha256.git"
	}
	dir := filepath.Join(r.shelf(), name)
	written := []struct{ name, text string }{{"config", config}, {"HEAD", "ref: refs/heads/none\n"}}
	whole := func() bool {
		return !slices.ContainsFunc(written, func(f struct{ name, text string }) bool {
			data, err := os.ReadFile(filepath.Join(dir, f.name))
			return err != nil || string(data) != f.text
		}) && isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs"))
	}
	if whole() {
		return dir, os.Chtimes(dir, time.Time{}, time.Now()) // in use, so that it is not swept
	}
	lock, err := r.lock(ctx, "lock", disk.Lock)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	err = errors.Join(os.MkdirAll(filepath.Join(dir, "objects"), 0o755), os.MkdirAll(filepath.Join(dir, "refs"), 0o755))
	for _, f := range written {
		if err == nil {
			err = disk.WriteFile(filepath.Join(dir, f.name), []byte(f.text))
		}
	}
	if err != nil {
		return "", fmt.Errorf("making a repository in the cache: %w", err)
	}
	return dir, nil
}

// read asks the vault, which sees the objects of a place.
func (r *Repo) read(ctx context.Context, p *place, format int, in io.Reader, out io.Writer, args ...string) error {
	vault, err := r.vault(ctx, format)
	if err != nil {
		return err
	}
	alternates := []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + p.alternates()}
	return call{dir: vault, repo: []string{"--git-dir=" + vault}, env: alternates, in: in, out: out, args: args}.run(ctx)
}

// Held are those of the names that a commit has.
func (r *Repo) Held(ctx context.Context, commit string, names []string) (map[string]bool, error) {
	held := map[string]bool{}
	if len(names) == 0 {
		return held, nil
	}
	files, err := r.list(ctx, &r.own, commit, names...)
	for _, f := range files {
		held[f.path] = true
	}
	return held, err
}

// list reads the files of a commit, or those of them that are named. A
// submodule is one entry.
func (r *Repo) list(ctx context.Context, p *place, commit string, names ...string) ([]file, error) {
	if raw, err := hex.DecodeString(commit); err != nil || len(raw) != sha1.Size && len(raw) != sha256.Size {
		return nil, fmt.Errorf("%q is not the id of a commit", commit)
	}
	var out bytes.Buffer
	tree := func() error {
		out.Reset()
		return r.read(ctx, p, len(commit), nil, &out, append([]string{"ls-tree", "-r", "-z", "--full-tree", commit, "--"}, names...)...)
	}
	err := tree()
	if answered(err) { // a shallow submodule, or a clone without trees
		if err := r.fetch(ctx, p, []string{commit}, "--depth=1"); err != nil {
			return nil, fmt.Errorf("commit %.12s is not in this clone, and %w", commit, err)
		}
		err = tree()
	}
	if err != nil {
		return nil, err
	}
	var files []file
	for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		head, path, _ := strings.Cut(line, "\t")
		if f := strings.Fields(head); len(f) == 3 {
			files = append(files, file{path: path, mode: f[0], id: f[2], from: p})
		} else if line != "" {
			return nil, fmt.Errorf("commit %.12s has an entry that cannot be read: %q", commit, line)
		}
	}
	return files, nil
}

// sizes are the sizes of the files' blobs by id. A blob that is missing has none.
func (r *Repo) sizes(ctx context.Context, p *place, files []file) (map[string]int64, error) {
	sizes := map[string]int64{}
	if len(files) == 0 {
		return sizes, nil
	}
	var out bytes.Buffer
	if err := r.read(ctx, p, len(files[0].id), ids(files), &out, "cat-file", "--batch-check", "--buffer"); err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		var id, kind string
		var size int64
		if n, _ := fmt.Sscanf(line, "%s %s %d", &id, &kind, &size); n == 3 && kind == "blob" {
			sizes[id] = size
		}
	}
	return sizes, nil
}

// blobs hands the content of every file to take, in their order. What take
// leaves is skipped.
func (r *Repo) blobs(ctx context.Context, p *place, files []file, take func(file, io.Reader) error) error {
	if len(files) == 0 {
		return nil
	}
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := r.read(ctx, p, len(files[0].id), ids(files), writer, "cat-file", "--batch", "--buffer")
		writer.CloseWithError(err)
		ended <- err
	}()
	err := takeAll(bufio.NewReaderSize(reader, 1<<16), files, take)
	reader.CloseWithError(errors.New("enough was read"))
	if gitErr := <-ended; err == nil {
		err = gitErr
	}
	return err
}

func takeAll(in *bufio.Reader, files []file, take func(file, io.Reader) error) error {
	for _, f := range files {
		head, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("reading %q: %w", f.path, err)
		}
		var id, kind string
		var size int64
		if n, _ := fmt.Sscanf(head, "%s %s %d", &id, &kind, &size); n != 3 || id != f.id || kind != "blob" {
			return fmt.Errorf("reading %q: git says %q of %s", f.path, strings.TrimSpace(head), f.id)
		}
		sum := newHash(f.id, size)
		body := &io.LimitedReader{R: in, N: size}
		all := io.TeeReader(body, sum)
		if err := take(f, all); err != nil {
			return fmt.Errorf("%q: %w", f.path, err)
		}
		if _, err := io.Copy(io.Discard, all); err != nil || body.N != 0 {
			return fmt.Errorf("reading %q: it is cut short: %w", f.path, errors.Join(err, io.ErrUnexpectedEOF))
		}
		if hex.EncodeToString(sum.Sum(nil)) != f.id {
			return fmt.Errorf("reading %q: object %s is damaged", f.path, f.id)
		}
		if _, err := in.Discard(1); err != nil { // the line break after it
			return err
		}
	}
	return nil
}

// newHash begins the id of a blob of so many bytes.
func newHash(like string, size int64) hash.Hash {
	h := sha1.New()
	if len(like) == 2*sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

func ids(files []file) io.Reader {
	var b bytes.Buffer
	for _, f := range files {
		b.WriteString(f.id + "\n")
	}
	return &b
}

// fetch gets objects that the clone does not hold into the vault, from where
// the user's clone came. Nothing that the vault has is offered for comparison:
// a clone may hold a commit without its files.
func (r *Repo) fetch(ctx context.Context, p *place, ids []string, more ...string) error {
	url, err := p.remote(ctx)
	if err != nil {
		return err
	}
	vault, err := r.vault(ctx, len(ids[0]))
	if err != nil {
		return err
	}
	lock, err := r.lock(ctx, "fetch.lock", disk.Lock)
	if err != nil {
		return err
	}
	defer lock.Close()
	os.Remove(filepath.Join(vault, "shallow.lock")) // of a fetch that was killed, since the lock is ours
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--recurse-submodules=no", "--stdin"}, more...)
	return call{
		dir: p.dir(vault), repo: []string{"--git-dir=" + vault},
		env:  []string{"GIT_ALLOW_PROTOCOL=https:http:ssh:git:file", "GIT_SSH_COMMAND=ssh -o BatchMode=yes", "GCM_INTERACTIVE=never"},
		pass: toFetch, limit: 10 * time.Minute, in: strings.NewReader(strings.Join(ids, "\n") + "\n"), args: append(args, "--", url),
	}.run(ctx)
}
