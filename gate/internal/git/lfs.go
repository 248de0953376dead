package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// mostPointer is the size in bytes that no pointer of git-lfs reaches.
const mostPointer = 1024

var (
	lfsVersion = []byte("version https://git-lfs.github.com/spec/v")
	lfsBody    = regexp.MustCompile(`(?m)^oid sha256:([0-9a-f]{64})\nsize ([0-9]+)$`)
)

// Pointer reports whether the content of a file is a pointer of git-lfs, so
// that what reads it reads something else than was meant.
func Pointer(data []byte) bool { return bytes.HasPrefix(data, lfsVersion) }

// notSmudged are the files that do not hold the content to which the commit's
// pointer of git-lfs points, and those that do. Git itself would run a filter
// to tell.
func (r *Repo) notSmudged(ctx context.Context, p *place, files []file) (differ, smudged []file, err error) {
	sizes, err := r.sizes(ctx, p, files)
	if err != nil {
		return nil, nil, err
	}
	var small []file
	for _, f := range files {
		if size, ok := sizes[f.id]; ok && size < mostPointer && f.mode != symlink {
			small = append(small, f)
		} else {
			differ = append(differ, f)
		}
	}
	err = r.blobs(ctx, p, small, func(f file, body io.Reader) error {
		blob, err := io.ReadAll(body)
		if f.sha = f.smudged(p.root, blob); f.sha == "" {
			differ = append(differ, f)
		} else {
			smudged = append(smudged, f)
		}
		return err
	})
	return differ, smudged, err
}

// smudged is the SHA-256 of what the folder holds where that is what a pointer
// points to, and "" otherwise.
func (f file) smudged(root string, blob []byte) string {
	path := filepath.Join(root, f.path)
	pointer := lfsBody.FindSubmatch(blob)
	info, err := os.Lstat(path)
	if pointer == nil || !Pointer(blob) || err != nil || !f.like(info) || string(pointer[2]) != strconv.FormatInt(info.Size(), 10) {
		return ""
	}
	if sum, err := digest(path, sha256.New()); err != nil || sum != string(pointer[1]) {
		return ""
	}
	return string(pointer[1])
}
