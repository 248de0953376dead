package git

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// changedSince is what differs now.
func changedSince(r *Repo, commit string) ([]string, error) {
	r.compared = nil
	c, err := r.Compare(context.Background(), commit)
	if err != nil {
		return nil, err
	}
	return c.Changed, nil
}

// TestNothingHidesAChange: git can be told to overlook each of these.
func TestNothingHidesAChange(t *testing.T) {
	model, _ := withSubmodule(t)
	model.write("id", "$Id$\n")
	if err := os.Symlink("a", filepath.Join(model.dir, "link")); err != nil {
		t.Fatal(err)
	}
	commit := model.commit("a", "2")
	for _, c := range []struct {
		name string
		hide func(s sandbox)
		want []string
	}{
		{"nothing", func(s sandbox) {}, nil},
		{"assume-unchanged", func(s sandbox) { s.git("update-index", "--assume-unchanged", "a"); s.write("a", "x") }, []string{"a"}},
		{"skip-worktree", func(s sandbox) { s.git("update-index", "--skip-worktree", "a"); s.write("a", "x") }, []string{"a"}},
		{"removed under skip-worktree", func(s sandbox) { s.git("update-index", "--skip-worktree", "a"); os.Remove(filepath.Join(s.dir, "a")) }, []string{"a"}},
		{"core.ignoreStat", func(s sandbox) {
			s.git("config", "core.ignoreStat", "true")
			s.git("update-index", "--really-refresh")
			s.write("a", "x")
		}, []string{"a"}},
		{"same size and time", func(s sandbox) {
			s.git("config", "core.trustctime", "false")
			path := filepath.Join(s.dir, "a")
			os.Chtimes(path, s.old(), s.old())
			info, _ := os.Stat(path)
			s.git("update-index", "--refresh")
			s.write("a", "3")
			os.Chtimes(path, time.Time{}, info.ModTime())
		}, []string{"a"}},
		{"core.fileMode", func(s sandbox) { s.git("config", "core.fileMode", "false"); os.Chmod(filepath.Join(s.dir, "a"), 0o755) }, []string{"a"}},
		{"core.symlinks", func(s sandbox) {
			s.git("config", "core.symlinks", "false")
			os.Remove(filepath.Join(s.dir, "link"))
			s.write("link", "a")
		}, []string{"link"}},
		{"another link", func(s sandbox) {
			os.Remove(filepath.Join(s.dir, "link"))
			os.Symlink("libs", filepath.Join(s.dir, "link"))
		}, []string{"link"}},
		{"core.ignoreCase", func(s sandbox) { s.git("config", "core.ignoreCase", "true"); s.write("A", "x") }, []string{"A"}},
		{"core.worktree", func(s sandbox) {
			s.git("config", "core.worktree", s.dir)
			s.in("libs/sub").git("config", "core.worktree", "../../..")
			s.write("libs/sub/in", "x")
		}, []string{"libs/sub/in"}},
		{"showUntrackedFiles", func(s sandbox) { s.git("config", "status.showUntrackedFiles", "no"); s.write("new/b", "x") }, []string{"new/b"}},
		{"a name that is not UTF-8", func(s sandbox) {
			os.Mkdir(filepath.Join(s.dir, "not \xff utf-8"), 0o755)
			s.write("not \xff utf-8/b", "x")
		}, []string{"not \xff utf-8/b"}},
		{"added and ignored", func(s sandbox) {
			s.write(".git/info/exclude", "*.cu\n")
			s.write("b.cu", "x")
			s.git("add", "-f", "b.cu")
		}, []string{"b.cu"}},
		{"clean filter", func(s sandbox) {
			s.git("config", "filter.x.clean", "printf 2")
			s.write(".git/info/attributes", "a filter=x\n")
			s.write("a", "x")
		}, []string{"a"}},
		{"ident", func(s sandbox) { s.write(".git/info/attributes", "id ident\n"); s.write("id", "$Id: hidden $\n") }, []string{"id"}},
		{"line ends", func(s sandbox) { s.git("config", "core.autocrlf", "true"); s.write("id", "$Id$\r\n") }, []string{"id"}},
		{"submodule.ignore", func(s sandbox) {
			s.git("config", "submodule.libs/sub.ignore", "all")
			s.git("config", "diff.ignoreSubmodules", "all")
			s.write("libs/sub/in", "x")
			s.write("libs/sub/more", "x")
		}, []string{"libs/sub/in", "libs/sub/more"}},
		{"another commit of the submodule", func(s sandbox) {
			s.git("config", "submodule.libs/sub.ignore", "all")
			s.in("libs/sub").git("checkout", "-q", "HEAD~1")
		}, []string{"libs/sub/in"}},
		{"a submodule without its files", func(s sandbox) { os.Remove(filepath.Join(s.dir, "libs/sub/in")) }, []string{"libs/sub/in"}},
		{"a submodule that is not checked out", func(s sandbox) { s.git("submodule", "deinit", "-q", "-f", "libs/sub") }, nil},
		{"another one that is not checked out", func(s sandbox) {
			s.git("submodule", "deinit", "-q", "-f", "libs/sub")
			s.git("update-index", "--cacheinfo", "160000,"+s.git("rev-parse", "HEAD")+",libs/sub")
		}, []string{"libs/sub"}},
		{"a submodule in which files lie", func(s sandbox) {
			s.git("submodule", "deinit", "-q", "-f", "libs/sub")
			s.write("libs/sub/in", "new")
		}, []string{"libs/sub"}},
		{"a submodule whose folder is lost", func(s sandbox) { s.write("libs/sub/.git", "gitdir: nowhere\n") }, []string{"libs/sub"}},
		{"a repository of its own", func(s sandbox) { s.git("init", "-q", "own"); s.in("own").commit("x", "x") }, []string{"own"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sandbox{t, filepath.Join(t.TempDir(), "copy")}
			if out, err := exec.Command("cp", "-a", model.dir, s.dir).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			c.hide(s)
			r := s.open()
			if got, err := changedSince(r, commit); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("changed: %q, %v, want %q", got, err, c.want)
			}
			if _, dirty, err := r.Head(context.Background()); err != nil || dirty != (len(c.want) > 0) {
				t.Errorf("dirty: %v, %v", dirty, err)
			}
		})
	}
}

// TestSame holds what was read of a file against the commit's content.
func TestSame(t *testing.T) {
	s, _ := withSubmodule(t)
	s.write(".gitignore", "ignored\n")
	s.write("large.bin", pointer)
	commit := s.commit("a", "2")
	s.write("large.bin", "foo")
	s.write("ignored", "x")
	s.write("new", "x")
	c, err := s.open().Compare(context.Background(), commit)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	inSub, err := os.ReadFile(filepath.Join(s.dir, "libs/sub/in"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		path, read  string
		knows, same bool
		has         bool
	}{
		{"a", "2", true, true, true}, {"a", "3", true, false, false}, {"large.bin", "foo", true, true, true}, {"large.bin", "fob", true, false, false}, {"large.bin", pointer, true, false, true},
		{"libs/sub/in", string(inSub), true, true, true}, {"new", "x", true, false, false}, {"ignored", "x", false, false, false}, {"libs/sub", "", false, false, false},
		{"a", "", true, false, false}, {"none", "", false, false, false},
	} {
		same, err := c.Same(f.path, sum(f.read))
		if knows := c.Knows(f.path); err != nil || same != f.same || knows != f.knows {
			t.Errorf("%s read as %q: knows %v, same %v, %v", f.path, f.read, knows, same, err)
		}
		if has := c.Has(f.path, []byte(f.read)); has != f.has {
			t.Errorf("the commit has %q at %s: %v", f.read, f.path, has)
		}
	}
	s.write("a", "3") // after it was compared
	if !c.Has("a", []byte("2")) || c.Has("a", []byte("3")) {
		t.Error("what the commit has of a file follows the working tree")
	}
	for _, read := range []string{"2", "3"} {
		if same, err := c.Same("a", sum(read)); err != nil || same {
			t.Errorf("changed since, read as %s: %v, %v", read, same, err)
		}
	}
}

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\nsize 3\n"

func TestPointersOfLargeFiles(t *testing.T) {
	s := newSandbox(t)
	s.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	commit := s.commit("a.bin", pointer)
	r := s.open()
	for _, c := range []struct {
		name, text string
		want       []string
		pointer    bool
	}{
		{"the pointer itself", pointer, nil, true}, {"what it points to", "foo", nil, false}, {"other content", "bar", []string{"a.bin"}, false},
		{"cut short", "fo", []string{"a.bin"}, false}, {"empty", "", []string{"a.bin"}, false}, {"another pointer", strings.Replace(pointer, "2c", "2d", 1), []string{"a.bin"}, true},
	} {
		s.write("a.bin", c.text)
		if got, err := changedSince(r, commit); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if got := Pointer([]byte(c.text)); got != c.pointer {
			t.Errorf("%s: a pointer: %v", c.name, got)
		}
	}
	s.write("a.bin", "foo")
	if err := os.Chmod(filepath.Join(s.dir, "a.bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := changedSince(r, commit); err != nil || !slices.Equal(got, []string{"a.bin"}) {
		t.Errorf("executable: %q, %v", got, err)
	}
	tree, err := r.Tree(context.Background(), commit)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(tree.Dir, "a.bin")); err != nil || !Pointer(data) {
		t.Errorf("in the base: %q, %v", data, err)
	}
}
