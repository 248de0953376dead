package project

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinksLeadToWhatGitHolds: what a link that git does not hold, or one that
// leaves the tree, leads to is not the tree's.
func TestLinksLeadToWhatGitHolds(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a/b", "real"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"a/b/file", "real/file", "real/secret"} {
		if err := os.WriteFile(filepath.Join(root, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"a/up": "../real/file", "a/dir": "../real", "a/twice": "dir/file", "a/out": "../../file", "a/absolute": filepath.Join(root, "real/file"),
		"a/unknown": "../real/file", "a/round": "round", "a/through": "dir/../b/file", "a/secret": "../real/secret", "gone": "none",
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	hidden := map[string]bool{"a/unknown": true, "real/secret": true}
	for file, want := range map[string]string{
		"a/b/file": "a/b/file", "a/up": "real/file", "a/dir/file": "real/file", "a/twice": "real/file", "a/./b/../b/file": "a/b/file",
		"a/out": "", "a/absolute": "", "a/unknown": "", "a/round": "", "a/through": "", "a/secret": "", "a/dir/secret": "", "real/secret": "",
		"../x": "", "/etc/passwd": "", "gone": "", "none": "", "none/file": "",
	} {
		if got, ok := leads(root, file, func(f string) bool { return !hidden[f] }); ok != (want != "") || ok && got != want {
			t.Errorf("%s leads to %q, %v; want %q", file, got, ok, want)
		}
	}
}
