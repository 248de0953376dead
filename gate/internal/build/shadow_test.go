package build

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	dir := t.TempDir()
	names := func(dir string) string {
		t.Helper()
		sum, err := openHasher(filepath.Join(t.TempDir(), "none")).names(dir)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	flat, deep := filepath.Join(dir, "inc"), filepath.Join(dir, "inc", below)
	seen := []string{names(flat)}
	if names(deep) != seen[0] {
		t.Error("a folder that is not there has names")
	}
	for _, c := range []struct {
		file       string
		flat, deep bool // whether the file changes the names
	}{
		{"a.h", true, true}, {"b.cuh", true, true}, {"c.cu", false, false}, {"README.md", false, false}, {"noext", true, true},
		{"sub/d.h", false, true}, {".git/e.h", false, false},
	} {
		before, beforeDeep := names(flat), names(deep)
		write(t, filepath.Join(flat, c.file), "")
		if (names(flat) != before) != c.flat || (names(deep) != beforeDeep) != c.deep {
			t.Errorf("%s: flat %v, deep %v", c.file, names(flat) != before, names(deep) != beforeDeep)
		}
		write(t, filepath.Join(flat, c.file), "other content")
		if now := names(flat); c.flat && (now == before || slices.Contains(seen, now)) {
			t.Errorf("%s: the names are those of before", c.file)
		}
		seen = append(seen, names(flat))
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openHasher(file).names(filepath.Join(file, "sub")); err == nil {
		t.Error("a folder that cannot be read has names")
	}
}
