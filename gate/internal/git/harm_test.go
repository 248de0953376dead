package git

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// snapshot is every byte, mode and time below a folder.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		all[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano(), content)
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("snapshot of %s: %d files, %v", dir, len(all), err)
	}
	return all
}

func differences(a, b map[string]string) (names []string) {
	for path := range a {
		if a[path] != b[path] {
			names = append(names, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			names = append(names, path)
		}
	}
	return names
}

// useAll asks everything that can be asked of a repository.
func useAll(t *testing.T, dir, cache, base string) Tree {
	t.Helper()
	ctx := context.Background()
	r, err := Open(ctx, dir, cache)
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Base(ctx, base, unset)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Head(ctx); err != nil {
		t.Error(err)
	}
	changed, err := changedSince(r, b.Commit)
	if err != nil {
		t.Error(err)
	}
	for _, f := range changed {
		r.DiffLines(ctx, b.Commit, f, 10)
	}
	tree, err := r.Tree(ctx, b.Commit)
	if err != nil {
		t.Error(err)
	}
	return tree
}

// withSubmodule is a repository with one submodule, libs/sub, of which the
// branch main records another commit than the one checked out.
func withSubmodule(t *testing.T) (s, origin sandbox) {
	t.Helper()
	origin = newSandbox(t)
	origin.commit("in", "old")
	s = newSandbox(t)
	s.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "file://"+origin.dir, "libs/sub")
	s.commit("a", "1")
	s.git("checkout", "-q", "-b", "work")
	origin.commit("in", "new")
	origin.git("config", "uploadpack.allowAnySHA1InWant", "true")
	origin.git("config", "uploadpack.allowFilter", "true")
	s.in("libs/sub").git("-c", "protocol.file.allow=always", "pull", "-q")
	s.commit("a", "2")
	return s, origin
}

// in is a repository below another one.
func (s sandbox) in(dir string) sandbox { return sandbox{s.t, filepath.Join(s.dir, dir)} }

func TestNoByteOfTheRepositoryChanges(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T) (all []string, dir, base string)
	}{
		{"clone", func(t *testing.T) ([]string, string, string) {
			s := newSandbox(t)
			s.commit("sub/a", "1")
			s.write("new", "1")
			return []string{s.dir}, s.dir, "main"
		}},
		{"an index that git would refresh", func(t *testing.T) ([]string, string, string) {
			s := newSandbox(t)
			s.commit("a", "1")
			s.git("config", "core.untrackedCache", "true")
			s.git("config", "feature.manyFiles", "true")
			s.git("update-index", "--force-untracked-cache")
			s.git("status")
			s.write("a", "1")
			return []string{s.dir}, s.dir, "main"
		}},
		{"folder below", func(t *testing.T) ([]string, string, string) {
			s := newSandbox(t)
			s.commit("sub/a", "1")
			return []string{s.dir}, filepath.Join(s.dir, "sub"), "main"
		}},
		{"linked worktree, the main one away", func(t *testing.T) ([]string, string, string) {
			s := newSandbox(t)
			s.commit("a", "1")
			linked, away := filepath.Join(t.TempDir(), "linked"), filepath.Join(t.TempDir(), "away")
			s.git("worktree", "add", "-q", "-b", "linked", linked)
			s.git("worktree", "add", "-q", "-b", "away", away)
			if err := os.RemoveAll(away); err != nil {
				t.Fatal(err)
			}
			return []string{s.dir, linked}, linked, "main"
		}},
		{"with a submodule", func(t *testing.T) ([]string, string, string) {
			s, origin := withSubmodule(t)
			return []string{s.dir, origin.dir}, s.dir, "main"
		}},
		{"in a submodule", func(t *testing.T) ([]string, string, string) {
			s, origin := withSubmodule(t)
			return []string{s.dir, origin.dir}, filepath.Join(s.dir, "libs/sub"), "HEAD~1"
		}},
		{"clone without blobs", func(t *testing.T) ([]string, string, string) {
			s, clone := partial(t, "blob:none")
			later := s.commit("a", "later") // git would fetch it when it is named
			before := snapshot(t, clone.dir)
			if b, err := clone.open().Base(context.Background(), later, unset); err == nil {
				t.Errorf("a commit that is not here was found: %+v", b)
			}
			if after := snapshot(t, clone.dir); !maps.Equal(before, after) {
				t.Errorf("changed: %q", differences(before, after))
			}
			return []string{s.dir, clone.dir}, clone.dir, "HEAD~1"
		}},
		{"clone without trees", func(t *testing.T) ([]string, string, string) {
			s, clone := partial(t, "tree:0")
			return []string{s.dir, clone.dir}, clone.dir, "HEAD~1"
		}},
		{"sha256", func(t *testing.T) ([]string, string, string) {
			s := newSandbox(t)
			s.git("init", "-q", "--object-format=sha256", "other")
			s.in("other").commit("a", "1")
			return []string{s.dir}, filepath.Join(s.dir, "other"), "HEAD"
		}},
	} {
		for _, hostile := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, variables of git set: %v", c.name, hostile), func(t *testing.T) {
				watched, dir, base := c.make(t)
				other := newSandbox(t)
				other.commit("other", "1")
				watched = append(watched, other.dir)
				if hostile {
					for name, value := range map[string]string{
						"GIT_DIR": other.dir + "/.git", "GIT_INDEX_FILE": other.dir + "/.git/index", "GIT_WORK_TREE": other.dir, "GIT_PREFIX": "x/",
						"GIT_OBJECT_DIRECTORY": other.dir + "/.git/objects", "GIT_COMMON_DIR": other.dir + "/.git", "GIT_NAMESPACE": "x",
						"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.worktree", "GIT_CONFIG_VALUE_0": other.dir,
						"GIT_CONFIG_PARAMETERS": "'core.worktree=" + other.dir + "'", "GIT_EXTERNAL_DIFF": "false", "GIT_LITERAL_PATHSPECS": "x",
						"GIT_QUARANTINE_PATH": other.dir, "GIT_SHALLOW_FILE": other.dir + "/.git/HEAD", "GIT_REPLACE_REF_BASE": "refs/x", "GIT_DIFF_OPTS": "-u9",
					} {
						t.Setenv(name, value)
					}
				}
				before := make([]map[string]string, len(watched))
				for i, w := range watched {
					before[i] = snapshot(t, w)
				}
				if tree := useAll(t, dir, t.TempDir(), base); len(tree.Gaps) != 0 {
					t.Errorf("gaps: %+v", tree.Gaps)
				}
				for i, w := range watched {
					if after := snapshot(t, w); !maps.Equal(before[i], after) {
						t.Errorf("changed in %s: %q", w, differences(before[i], after))
					}
				}
			})
		}
	}
}

// partial is a repository with two commits, and a clone of it that lacks
// objects of the first.
func partial(t *testing.T, filter string) (s, clone sandbox) {
	t.Helper()
	s = newSandbox(t)
	s.write("same", "1")
	s.commit("sub/a", "old")
	s.commit("sub/a", "new")
	s.git("config", "uploadpack.allowFilter", "true")
	s.git("config", "uploadpack.allowAnySHA1InWant", "true")
	clone = sandbox{t, filepath.Join(t.TempDir(), "clone")}
	s.git("clone", "-q", "--filter="+filter, "file://"+s.dir, clone.dir)
	return s, clone
}

// TestNoConfigurationRunsCode: a repository comes from a stranger with all that
// is configured in it.
func TestNoConfigurationRunsCode(t *testing.T) {
	s, clone := partial(t, "blob:none")
	program := filepath.Join(t.TempDir(), "program")
	ran := program + "-ran"
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >>"+ran+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"core.fsmonitor": program, "core.hooksPath": filepath.Join(clone.dir, "hooks"), "core.pager": program, "pager.diff": program, "pager.rev-parse": program, "core.editor": program,
		"core.sshCommand": program, "core.gitProxy": program, "core.askPass": program, "core.alternateRefsCommand": program, "credential.helper": "!" + program,
		"filter.x.clean": program, "filter.x.smudge": program, "filter.y.process": program, "filter.x.required": "true", "diff.external": program, "diff.x.textconv": program,
		"diff.x.command": program, "merge.x.driver": program, "alias.rev-parse": "!" + program, "alias.ls-files": "!" + program, "gpg.program": program,
		"remote.origin.uploadpack": program, "remote.origin.vcs": "ext", "core.worktree": clone.dir, "tar.x.command": program, "interactive.diffFilter": program,
	} {
		clone.git("config", key, value)
	}
	clone.write(".git/info/attributes", "* filter=x diff=x merge=x\nsame filter=y\n")
	clone.write(".gitattributes", "* filter=x diff=x merge=x\nsame filter=y\n")
	for _, hook := range []string{"post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc", "post-merge"} {
		clone.write("hooks/"+hook, "#!/bin/sh\necho hook >>"+ran+"\n")
		if err := os.Chmod(filepath.Join(clone.dir, "hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	os.Chtimes(filepath.Join(clone.dir, "same"), s.old(), s.old())
	useAll(t, clone.dir, t.TempDir(), "HEAD~1")
	// An address that is a command is not followed.
	clone.git("config", "remote.origin.url", "ext::sh -c 'touch "+ran+"'")
	r, err := Open(context.Background(), clone.dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tree(context.Background(), s.git("rev-parse", "HEAD~1")); err == nil || !strings.Contains(err.Error(), "'ext' not allowed") {
		t.Errorf("an address that is a command: %v", err)
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("it ran:\n%s", text)
	}
}
