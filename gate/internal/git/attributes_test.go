package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestConversionsThatChange: git holds a file before it converts it, so that
// rules which change leave open what lay there at the commit.
func TestConversionsThatChange(t *testing.T) {
	model, _ := withSubmodule(t)
	model.write("kernels/.gitattributes", "*.cu ident\n*.png -text\n")
	model.write("kernels/k.cu", "$Id$\n")
	commit := model.commit("a", "2")
	for _, c := range []struct {
		name string
		edit func(s sandbox)
		want []string // of a, kernels/k.cu and libs/sub/in
	}{
		{"nothing", func(s sandbox) {}, nil},
		{"a rule that goes", func(s sandbox) { s.write("kernels/.gitattributes", "*.png -text\n") }, []string{"kernels/k.cu"}},
		{"the file goes", func(s sandbox) { os.Remove(filepath.Join(s.dir, "kernels/.gitattributes")) }, []string{"kernels/k.cu"}},
		{"a rule for everything", func(s sandbox) { s.write(".gitattributes", "* working-tree-encoding=UTF-16\n") }, []string{"a", "kernels/k.cu", "libs/sub/in"}},
		{"a rule that is taken back", func(s sandbox) { s.write(".gitattributes", "* -filter\n") }, []string{"a", "kernels/k.cu", "libs/sub/in"}},
		{"line ends", func(s sandbox) { s.write("kernels/.gitattributes", "*.cu ident\n*.h text eol=crlf\n") }, []string{"kernels/k.cu"}},
		{"in a submodule", func(s sandbox) { s.write("libs/sub/.gitattributes", "* filter=x\n") }, []string{"libs/sub/in"}},
		{"what converts nothing here", func(s sandbox) {
			s.write("kernels/.gitattributes", "*.cu   ident\n# ident\n*.bin filter=lfs diff=lfs -text\n*.sh eol=lf\n")
		}, nil},
	} {
		s := sandbox{t, filepath.Join(t.TempDir(), "copy")}
		if out, err := exec.Command("cp", "-a", model.dir, s.dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		c.edit(s)
		got, err := s.open().Compare(context.Background(), commit)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, file := range []string{"a", "kernels/k.cu", "libs/sub/in"} {
			if want := slices.Contains(c.want, file); got.Converted(file) != want {
				t.Errorf("%s: %s is converted otherwise: %v, want %v", c.name, file, !want, want)
			}
		}
	}
}
