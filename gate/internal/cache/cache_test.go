package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/exit"
)

var files = []string{
	"build/files.json", "build/objects/a/lib.so", "build/objects/b/lib.so", "build/deps/a.json", "build/tmp/nvcc-1/x",
	"harness/0123/gate.h", "harness/gate-harness-1", "evidence/h200/code-host/op-case/latency.json", "evidence/h200/code-host/op-case/latency.1.gz",
	"base/1234/lock", "base/lock", "base/objects-sha1.git/HEAD", "toolchains/.lock", "toolchains/cuda-13/bin/nvcc", "versions.json",
}

// folder is a cache in which every file has three bytes and is a day old.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	release, err := Use(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
	for _, f := range files {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("abc"), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	err = filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, yesterday, yesterday)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// left are the files of a folder.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f)); err == nil {
			out = append(out, f)
		}
	}
	return out
}

func sizes(l Listing) (out []Size) {
	for _, s := range l.Kinds {
		if s.Pieces > 0 {
			out = append(out, s)
		}
	}
	return out
}

func TestListCountsPieces(t *testing.T) {
	l, err := List(folder(t))
	want := []Size{{"builds", 5, 15}, {"harness", 2, 6}, {"inputs", 0, 0}, {"evidence", 1, 6}, {"unfinished", 0, 0}, {"stores", 0, 0}, {"bases", 2, 6}, {"toolchains", 1, 3}}
	if err != nil || !slices.Equal(l.Kinds, want) || l.Bytes() != 36 {
		t.Errorf("%+v, %v", l, err)
	}
	none, err := List(filepath.Join(t.TempDir(), "nowhere"))
	if err != nil || len(sizes(none)) > 0 || len(none.Kinds) != len(kinds) {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestClean(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		s    Selection
		gone []string // beginnings
	}{
		"all":                   {Selection{}, []string{"build/", "harness/", "base/1", "base/o", "toolchains/cuda"}},
		"all with evidence":     {Selection{Evidence: true}, []string{"build/", "harness/", "base/1", "base/o", "toolchains/cuda", "evidence/"}},
		"nothing is so old":     {Selection{Before: now.Add(-25 * time.Hour), Evidence: true}, nil},
		"older":                 {Selection{Before: now.Add(-time.Hour)}, []string{"build/files", "build/objects/b", "build/deps", "build/tmp", "harness/", "base/1", "base/o"}},
		"older, with evidence.": {Selection{Before: now.Add(-time.Hour), Evidence: true}, []string{"build/files", "build/objects/b", "build/deps", "build/tmp", "harness/", "base/1", "base/o", "evidence/"}},
	} {
		dir := folder(t)
		if err := os.Chtimes(filepath.Join(dir, "build/objects/a/lib.so"), now, now); err != nil { // one file is new
			t.Fatal(err)
		}
		before, _ := List(dir)
		removed, err := Clean(dir, c.s)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(files), func(f string) bool {
			return slices.ContainsFunc(c.gone, func(g string) bool { return strings.HasPrefix(f, g) })
		})
		if got := left(t, dir); !slices.Equal(got, want) {
			t.Errorf("%s: left are %q, want %q", name, got, want)
		}
		after, err := List(dir)
		if err != nil || before.Bytes() != after.Bytes()+removed.Bytes() {
			t.Errorf("%s: %d bytes, %d removed, %d left, %v", name, before.Bytes(), removed.Bytes(), after.Bytes(), err)
		}
		if _, err := os.Stat(filepath.Join(dir, "evidence/h200")); (err == nil) != slices.Contains(want, "evidence/h200/code-host/op-case/latency.json") {
			t.Errorf("%s: an empty folder is left: %v", name, err)
		}
	}
}

// TestCleanLeavesSharedFolders: where somebody else's file lies beside gate's folders,
// they may be somebody else's, too.
func TestCleanLeavesSharedFolders(t *testing.T) {
	for name, shared := range map[string]bool{"notes.txt": true, ".bashrc": true, "src": true, ".tmp-0123456789ab-1-1-2": false, "lost+found": false} {
		dir := folder(t)
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		before := left(t, dir)
		_, err := Clean(dir, Selection{Evidence: true})
		var misuse *exit.Error
		if refused := errors.As(err, &misuse) && misuse.ExitCode() == exit.Usage && strings.Contains(err.Error(), name); refused != shared {
			t.Errorf("%s: %v", name, err)
		}
		if after := left(t, dir); shared && !slices.Equal(before, after) {
			t.Errorf("%s: left are %q of %q", name, after, before)
		}
	}
}

// TestCleanStaysInside: nothing that a link leads to is removed.
func TestCleanStaysInside(t *testing.T) {
	dir, outside := folder(t), folder(t)
	for _, link := range []string{"build", "evidence/h200/code-host", "harness/0123"} {
		if err := os.RemoveAll(filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(outside, link), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Clean(dir, Selection{Evidence: true}); err != nil {
		t.Fatal(err)
	}
	if got := left(t, outside); !slices.Equal(got, files) {
		t.Errorf("left are %q", got)
	}
}

func TestCleanWaitsForNobody(t *testing.T) {
	dir := folder(t)
	var releases []func()
	for range 2 { // two gates use it at once
		release, err := Use(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	for _, release := range releases {
		if _, err := Clean(dir, Selection{Evidence: true}); err == nil || !strings.HasPrefix(err.Error(), "another gate uses the cache") {
			t.Errorf("cleaned while it is used: %v", err)
		} else if status, hint := exit.Of(err); status != exit.Tool || hint == "" {
			t.Errorf("status %d, hint %q", status, hint)
		}
		if got := left(t, dir); !slices.Equal(got, files) {
			t.Errorf("left are %q", got)
		}
		release()
	}
	if removed, err := Clean(dir, Selection{}); err != nil || removed.Bytes() == 0 {
		t.Errorf("%+v, %v", removed, err)
	}
}

// TestCleanKnowsItsOwn: GATE_CACHE may name any folder by mistake.
func TestCleanKnowsItsOwn(t *testing.T) {
	dir := folder(t)
	if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
		t.Fatal(err)
	}
	_, err := Clean(dir, Selection{Evidence: true})
	if status, _ := exit.Of(err); status != exit.Usage {
		t.Errorf("%v", err)
	}
	if got := left(t, dir); !slices.Equal(got, files) {
		t.Errorf("left are %q", got)
	}
	if l, err := Clean(filepath.Join(dir, "nowhere"), Selection{}); err != nil || l.Bytes() != 0 {
		t.Errorf("a cache that is not there: %+v, %v", l, err)
	}
}

func TestUseNeedsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Use(context.Background(), file); err == nil {
		t.Error("a file is used as a folder")
	}
}
