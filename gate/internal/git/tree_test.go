package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// base makes the tree of a commit and returns its files with their content,
// links with what they point to and programs with a star.
func (s sandbox) base(cache, commit string) (Tree, map[string]string) {
	s.t.Helper()
	r, err := Open(context.Background(), s.dir, cache)
	if err != nil {
		s.t.Fatal(err)
	}
	tree, err := r.Tree(context.Background(), commit)
	if err != nil {
		s.t.Fatal(err)
	}
	return tree, filesBelow(s.t, tree.Dir)
}

func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if e.Type() == fs.ModeSymlink {
			to, err := os.Readlink(path)
			files[name] = "-> " + to
			return err
		}
		data, err := os.ReadFile(path)
		if info, _ := e.Info(); info.Mode()&0o100 != 0 {
			name += "*"
		}
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestTreeHoldsWhatTheCommitHolds(t *testing.T) {
	s := newSandbox(t)
	want := map[string]string{
		"empty": "", "no end": "x", "deep/er/file": "1\n", "left out": "kept", "line\r": "a\r\nb\n", "$Id": "$Id$", "not \xff utf-8": "1", "line\nbreak": "1", "-x": "1",
		".gitattributes": "*left* export-ignore\n* text eol=crlf ident\n$Id ident\n", "big": strings.Repeat("0123456789abcdef", 1<<17), "utf-16": "a",
	}
	for name, text := range want {
		s.write(name, text)
	}
	s.git("-c", "core.autocrlf=false", "add", "-A")
	s.write("program", "#!/bin/sh\n")
	if err := errors.Join(os.Chmod(filepath.Join(s.dir, "program"), 0o755), os.Symlink("../deep/er", filepath.Join(s.dir, "link")), os.Symlink("/etc", filepath.Join(s.dir, "out"))); err != nil {
		t.Fatal(err)
	}
	commit := s.commit("deep/er/file", "1\n")
	want["program*"], want["link"], want["out"] = "#!/bin/sh\n", "-> ../deep/er", "-> /etc"
	want["line\r"] = "a\nb\n" // as the commit has it
	s.commit("deep/er/file", "2\n")
	cache := t.TempDir()
	tree, got := s.base(cache, commit)
	if !maps.Equal(got, want) || len(tree.Gaps) != 0 || tree.Dir != filepath.Join(cache, "base", commit) {
		t.Errorf("%+v differs: %q", tree, differences(want, got))
	}
	packed := s
	packed.git("gc", "-q")
	if _, got := s.base(t.TempDir(), commit); !maps.Equal(got, want) {
		t.Errorf("from a pack: %q", differences(want, got))
	}
	clone := sandbox{t, filepath.Join(t.TempDir(), `cl"o:n\e`)}
	s.git("clone", "-q", "--shared", s.dir, clone.dir)
	if _, got := clone.base(t.TempDir(), commit); !maps.Equal(got, want) {
		t.Errorf("from a shared clone: %q", differences(want, got))
	}
}

func TestTreeIsSharedAndHeals(t *testing.T) {
	s := newSandbox(t)
	s.write("sub/b", "1")
	commit := s.commit("a", "1")
	cache := t.TempDir()
	tree, want := s.base(cache, commit)
	at := func(name string) string { return filepath.Join(tree.Dir, name) }
	before := snapshot(t, at("sub"))
	if again, _ := s.base(cache, commit); again.Dir != tree.Dir || !maps.Equal(before, snapshot(t, at("sub"))) {
		t.Errorf("made twice: %s, %q", again.Dir, differences(before, snapshot(t, at("sub"))))
	}
	for name, damage := range map[string]func() error{
		"changed":    func() error { return os.WriteFile(at("a"), []byte("2"), 0o644) },
		"cut short":  func() error { return os.Truncate(at("sub/b"), 0) },
		"gone":       func() error { return os.Remove(at("a")) },
		"one more":   func() error { return os.WriteFile(at("sub/c"), nil, 0o644) },
		"executable": func() error { return os.Chmod(at("a"), 0o755) },
		"a link":     func() error { return errors.Join(os.Remove(at("a")), os.Symlink(filepath.Join(s.dir, "a"), at("a"))) },
		"folder is a link": func() error {
			return errors.Join(os.RemoveAll(at("sub")), os.Symlink(filepath.Join(s.dir, "sub"), at("sub")))
		},
		"no folder": func() error { return errors.Join(os.RemoveAll(tree.Dir), os.WriteFile(tree.Dir, nil, 0o644)) },
		"no vault":  func() error { return os.RemoveAll(filepath.Join(cache, "base", "objects-sha1.git")) },
		"half a vault": func() error {
			return errors.Join(os.RemoveAll(tree.Dir), os.Remove(filepath.Join(cache, "base", "objects-sha1.git", "HEAD")))
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, got := s.base(cache, commit); !maps.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "base", "*")); len(left) != 3 {
		t.Errorf("left: %q", left)
	}
}

func leftovers(cache string) []string {
	found, _ := filepath.Glob(filepath.Join(cache, "tmp", "*"))
	return found
}

func TestOldTreesAreSwept(t *testing.T) {
	s := newSandbox(t)
	commit := s.commit("a", "1")
	cache := t.TempDir()
	name := func(word string, n int) string {
		return fmt.Sprintf("%x%x", word, strings.Repeat(string(rune('a'+n)), 20-len(word)))
	}
	age := func(name string, days int) {
		path := filepath.Join(cache, "base", name)
		if err := errors.Join(os.MkdirAll(filepath.Join(path, "x"), 0o755), os.Chtimes(path, time.Time{}, time.Now().Add(-time.Duration(days)*25*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		age(name("today", i), 0)
		age(name("yesterday", i), 1)
	}
	age(name("fortnight", 0), 14)
	age("thesis", 400) // which no gate made
	tree, _ := s.base(cache, commit)
	count := func(word string) int {
		if word != "thesis" && word != "objects" && word != commit {
			word = fmt.Sprintf("%x", word)
		}
		found, _ := filepath.Glob(filepath.Join(cache, "base", word+"*"))
		return len(found)
	}
	if count("today") != 12 || count("yesterday") != 0 || count("fortnight") != 0 || count("thesis") != 1 {
		t.Errorf("%d of today, %d of yesterday, %d older", count("today"), count("yesterday"), count("fortnight"))
	}
	for i := range 3 {
		age(name("week", i), 7)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(tree.Dir, "damage"), nil, 0o644), os.Chtimes(tree.Dir, s.old(), s.old()), os.Chtimes(filepath.Join(cache, "base", "objects-sha1.git"), s.old(), s.old())); err != nil {
		t.Fatal(err)
	}
	if s.base(cache, commit); count(commit) != 1 || count("objects") != 1 || count("week") != 0 {
		t.Errorf("%d of the commit, %d vaults, %d of last week", count(commit), count("objects"), count("week"))
	}
}

func TestTreeWithSubmodules(t *testing.T) {
	s, origin := withSubmodule(t)
	inner := newSandbox(t)
	inner.commit("deep", "1")
	sub := s.in("libs/sub")
	sub.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "file://"+inner.dir, "in ner")
	sub.git("commit", "-q", "-m", "inner")
	// One that holds its own .git folder.
	s.git("-c", "protocol.file.allow=always", "clone", "-q", "file://"+inner.dir, filepath.Join(s.dir, "own"))
	s.git("-c", "advice.addEmbeddedRepo=false", "add", "-A")
	s.git("commit", "-q", "-m", "both")
	both := s.git("rev-parse", "HEAD")
	want := map[string]string{
		"a": "2", "libs/sub/in": "new", "libs/sub/in ner/deep": "1", "own/deep": "1",
		".gitmodules":          "[submodule \"libs/sub\"]\n\tpath = libs/sub\n\turl = file://" + origin.dir + "\n",
		"libs/sub/.gitmodules": "[submodule \"in ner\"]\n\tpath = in ner\n\turl = file://" + inner.dir + "\n",
	}
	check := func(name, commit string, want map[string]string, gaps ...string) {
		t.Helper()
		tree, got := s.base(t.TempDir(), commit)
		if !maps.Equal(got, want) {
			t.Errorf("%s: %q", name, differences(want, got))
		}
		if len(tree.Gaps) != len(gaps) {
			t.Errorf("%s: gaps %+v", name, tree.Gaps)
			return
		}
		for i, g := range tree.Gaps {
			if g.Path != gaps[i] || !strings.Contains(g.Why, "the submodule "+gaps[i]+" cannot be read: ") || g.Hint == "" {
				t.Errorf("%s: gap %+v", name, g)
			}
		}
	}
	check("checked out", both, want)
	old := maps.Clone(want)
	for _, name := range []string{"own/deep", "libs/sub/in ner/deep", "libs/sub/.gitmodules"} {
		delete(old, name)
	}
	old["a"], old["libs/sub/in"] = "1", "old"
	check("an older one", s.git("rev-parse", "main"), old)
	s.git("submodule", "deinit", "-q", "-f", "libs/sub")
	s.git("rm", "-r", "-q", "--cached", "libs/sub")
	if err := os.RemoveAll(filepath.Join(s.dir, "libs")); err != nil {
		t.Fatal(err)
	}
	check("not checked out any more", both, want)
	if err := os.RemoveAll(filepath.Join(s.dir, ".git/modules/libs")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libs/sub/in", "libs/sub/in ner/deep", "libs/sub/.gitmodules"} {
		delete(want, name)
	}
	check("never checked out", both, want, "libs/sub")
	// A gap is looked at again, and one folder does not pass for the other.
	cache := t.TempDir()
	gap, _ := s.base(cache, both)
	s.git("reset", "-q", "--hard")
	s.git("-c", "protocol.file.allow=always", "clone", "-q", "--bare", "file://"+origin.dir, filepath.Join(s.dir, ".git/modules/libs/sub"))
	if full, _ := s.base(cache, s.git("rev-parse", "main")); len(full.Gaps) != 0 || full.Dir == gap.Dir {
		t.Errorf("%+v after %+v", full, gap)
	}
}

// TestMissingObjectsAreFetchedIntoTheCache: the clones that continuous
// integration makes are shallow, and large ones are partial.
func TestMissingObjectsAreFetchedIntoTheCache(t *testing.T) {
	for _, filter := range []string{"blob:none", "tree:0"} {
		s, clone := partial(t, filter)
		commit := s.git("rev-parse", "HEAD~1")
		cache := t.TempDir()
		if _, got := clone.base(cache, commit); !maps.Equal(got, map[string]string{"same": "1", "sub/a": "old"}) {
			t.Errorf("%s: %q", filter, got)
		}
		if err := os.RemoveAll(s.dir); err != nil { // what was fetched stays
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(cache, "base", commit)); err != nil {
			t.Fatal(err)
		}
		clone.base(cache, commit)
		r, err := Open(context.Background(), clone.dir, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if tree, err := r.Tree(context.Background(), commit); err == nil || !strings.HasPrefix(err.Error(), "reading the base: ") || !strings.Contains(err.Error(), "not in this clone, and git fetch: ") {
			t.Errorf("%s without its origin: %+v, %v", filter, tree, err)
		}
	}
	s, origin := withSubmodule(t)
	main := s.git("rev-parse", "main")
	clone := sandbox{t, filepath.Join(t.TempDir(), "clone")}
	s.git("-c", "protocol.file.allow=always", "clone", "-q", "--recurse-submodules", "--shallow-submodules", "file://"+s.dir, clone.dir)
	before := snapshot(t, clone.dir)
	cache := t.TempDir()
	lock := filepath.Join(cache, "base", "objects-sha1.git", "shallow.lock") // of a fetch that was killed
	clone.base(cache, clone.git("rev-parse", "HEAD"))
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if tree, got := clone.base(cache, main); got["libs/sub/in"] != "old" || len(tree.Gaps) != 0 {
		t.Errorf("a shallow submodule: %q, %+v", got, tree.Gaps)
	}
	if after := snapshot(t, clone.dir); !maps.Equal(before, after) {
		t.Errorf("changed: %q", differences(before, after))
	}
	if err := os.RemoveAll(origin.dir); err != nil {
		t.Fatal(err)
	}
	if tree, _ := clone.base(t.TempDir(), main); len(tree.Gaps) != 1 || !strings.Contains(tree.Gaps[0].Why, "is not in this clone, and git fetch: ") {
		t.Errorf("a shallow submodule without its origin: %+v", tree.Gaps)
	}
}

// TestHostileNames: git's own checkout refuses such trees, but stores them.
func TestHostileNames(t *testing.T) {
	s := newSandbox(t)
	s.commit("a", "1")
	blob := raw(t, s.git("rev-parse", "HEAD:a"))
	link := raw(t, s.stdin("../../../..", "hash-object", "-w", "--stdin"))
	tree := func(entries ...string) string {
		return s.stdin(strings.Join(entries, ""), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
	}
	below := func(name string, id string) string { return "40000 " + name + "\x00" + raw(t, id) }
	commit := func(id string) string { return s.git("commit-tree", "-m", "x", id) }
	for name, id := range map[string]string{
		"up":              tree(below("..", tree("100644 x\x00"+blob))),
		"absolute":        tree(below("", tree("100644 x\x00"+blob))),
		"dot":             tree(below(".", tree("100644 x\x00"+blob))),
		"git's folder":    tree(below(".git", tree("100644 config\x00"+blob))),
		"in other case":   tree(below("sub", tree(below(".GIT", tree("100644 config\x00"+blob))))),
		"through a link":  tree("120000 x\x00"+link, below("x", tree("100644 written\x00"+blob))),
		"through another": tree(below("x", tree("100644 written\x00"+blob)), "120000 x\x00"+link),
		"twice":           tree("100644 x\x00"+blob, "100644 x\x00"+blob),
	} {
		cache := filepath.Join(t.TempDir(), "a/b/c/d")
		r, err := Open(context.Background(), s.dir, cache)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Tree(context.Background(), commit(id)); err == nil {
			t.Errorf("%s: %+v holds %q", name, got, filesBelow(t, got.Dir))
		}
		if found, _ := filepath.Glob(filepath.Join(cache, "base", "*")); len(found) > 2 {
			t.Errorf("%s: %q are left", name, found)
		}
		if found, _ := filepath.Glob(filepath.Join(filepath.Dir(cache), "*")); len(found) != 1 {
			t.Errorf("%s: wrote %q", name, found)
		}
	}
}

func raw(t *testing.T, id string) string {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(id, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s sandbox) stdin(text string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = s.dir, strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("git %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// TestReplacedObjectsAreNotTheBase: git replace shows another commit in the
// place of the one that is asked for.
func TestReplacedObjectsAreNotTheBase(t *testing.T) {
	s := newSandbox(t)
	base := s.commit("a", "1")
	s.git("replace", base, s.commit("a", "2"))
	if _, got := s.base(t.TempDir(), base); got["a"] != "1" {
		t.Errorf("the base holds %q", got["a"])
	}
	if got, err := changedSince(s.open(), base); err != nil || len(got) != 1 {
		t.Errorf("changed: %q, %v", got, err)
	}
}

func TestDamagedObjects(t *testing.T) {
	s := newSandbox(t)
	base := s.commit("a", "1")
	id, other := s.git("rev-parse", "HEAD:a"), s.stdin("2", "hash-object", "-w", "--stdin")
	object := func(id string) string { return filepath.Join(s.dir, ".git/objects", id[:2], id[2:]) }
	if err := os.Rename(object(other), object(id)); err != nil {
		t.Fatal(err)
	}
	if tree, err := s.open().Tree(context.Background(), base); err == nil {
		t.Errorf("%q", filesBelow(t, tree.Dir))
	}
}

// repeat is set in processes that make the tree of HEAD again and again.
const repeat = "GATE_TEST_MAKE_TREE"

func makeTrees() {
	r, err := Open(context.Background(), os.Getenv(repeat), os.Getenv(repeat)+"-cache")
	for err == nil {
		var base Base
		var tree Tree
		if base, err = r.Base(context.Background(), "HEAD", unset); err == nil {
			tree, err = r.Tree(context.Background(), base.Commit)
		}
		if err == nil {
			_, err = changedSince(r, base.Commit)
			os.Remove(filepath.Join(tree.Dir, "f7"))
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestKillsLeaveNothingToMend(t *testing.T) {
	s := newSandbox(t)
	for i := range 40 {
		s.write(fmt.Sprintf("f%d", i), strings.Repeat("x", 1000*i))
	}
	commit := s.commit("a", "1")
	want := filesBelow(t, s.dir)
	maps.DeleteFunc(want, func(name, _ string) bool { return strings.HasPrefix(name, ".git") })
	before := snapshot(t, s.dir)
	cache := s.dir + "-cache"
	t.Cleanup(func() { os.RemoveAll(cache) })
	for i := range 25 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), repeat+"="+s.dir)
		var out bytes.Buffer
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(10+7*i) * time.Millisecond)
		cmd.Process.Kill()
		if cmd.Wait(); out.Len() != 0 {
			t.Fatalf("it ended by itself: %s", &out)
		}
		if i%5 != 4 {
			continue // the next one meets what this one left
		}
		if _, got := s.base(cache, commit); !maps.Equal(got, want) {
			t.Fatalf("after kill %d: %q", i, differences(want, got))
		}
		disk.SweepTemp(cache)
		if left := leftovers(cache); len(left) > 0 {
			t.Errorf("after kill %d: %q", i, left)
		}
	}
	if after := snapshot(t, s.dir); !maps.Equal(before, after) {
		t.Errorf("changed: %q", differences(before, after))
	}
}

func TestManyRunsAtOnce(t *testing.T) {
	s := newSandbox(t)
	var commits []string
	for i := range 3 {
		s.write("same", "1")
		commits = append(commits, s.commit("a", fmt.Sprint(i)))
	}
	before := snapshot(t, s.dir)
	cache := t.TempDir()
	var wg sync.WaitGroup
	for i := range 48 {
		wg.Go(func() {
			r, err := Open(context.Background(), s.dir, cache)
			if err != nil {
				t.Error(err)
				return
			}
			tree, err := r.Tree(context.Background(), commits[i%3])
			if text, readErr := os.ReadFile(filepath.Join(tree.Dir, "a")); err != nil || string(text) != fmt.Sprint(i%3) {
				t.Errorf("run %d: %q, %v", i, text, errors.Join(err, readErr))
			}
			if changed, err := changedSince(r, commits[2]); err != nil || len(changed) != 0 {
				t.Errorf("run %d: %q, %v", i, changed, err)
			}
		})
	}
	wg.Wait()
	if after := snapshot(t, s.dir); !maps.Equal(before, after) {
		t.Errorf("changed: %q", differences(before, after))
	}
	if left := leftovers(cache); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestCancelledTreeLeavesNothing(t *testing.T) {
	s := newSandbox(t)
	commit := s.commit("a", "1")
	r := s.open()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if tree, err := r.Tree(ctx, commit); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", tree, err)
	}
}

// TestDamagedVaultIsMadeAgain: a full disk can leave files of it empty.
func TestDamagedVaultIsMadeAgain(t *testing.T) {
	s := newSandbox(t)
	commit := s.commit("a", "1")
	cache := t.TempDir()
	for _, name := range []string{"", "HEAD", "config"} {
		r, err := Open(context.Background(), s.dir, cache)
		if err != nil {
			t.Fatal(err)
		}
		if name != "" {
			if err := os.Truncate(filepath.Join(r.shelf(), "objects-sha1.git", name), 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Compare(context.Background(), commit); err != nil {
			t.Errorf("with an empty %q: %v", name, err)
		}
	}
}
