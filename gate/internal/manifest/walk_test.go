package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestLinksAreNotFollowedOutOrInCircles(t *testing.T) {
	root, outside := tree(t, plain(nil)), tree(t, plain(nil))
	k := filepath.Join(root, "kernels")
	link(t, filepath.Join(outside, "kernels"), filepath.Join(k, "theirs"))
	link(t, "../../..", filepath.Join(k, "sum", "above"))
	link(t, "..", filepath.Join(k, "sum", "circle"))
	link(t, ".", filepath.Join(k, "self"))
	link(t, "sum/one", filepath.Join(k, "same"))
	if err := os.Mkdir(filepath.Join(k, "file"), 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(outside, "kernels/sum/one/kernel.yaml"), filepath.Join(k, "file", "kernel.yaml"))
	set, err := Load(root, everything)
	if err != nil {
		t.Fatal(err)
	}
	if got := kernelNames(set); got != "same sum/one" {
		t.Errorf("kernels %s", got)
	}
	slices.Sort(set.Notes)
	want := []string{`"kernels/file/kernel.yaml" leads out of the repository and was not followed`,
		`"kernels/self" leads back to a folder that holds it and was not followed`,
		`"kernels/sum/above" leads out of the repository and was not followed`,
		`"kernels/sum/circle" leads back to a folder that holds it and was not followed`,
		`"kernels/theirs" leads out of the repository and was not followed`}
	if !slices.Equal(set.Notes, want) {
		t.Errorf("notes %q", set.Notes)
	}
	link(t, "nowhere", filepath.Join(k, "sum", "one", "op.yaml"))
	if _, err := Load(root, everything); err == nil || !strings.Contains(err.Error(), "/op.yaml: cannot be read") {
		t.Errorf("a link to nothing: %v", err)
	}
}

func TestKernelsFolderThatIsALink(t *testing.T) {
	root, outside := t.TempDir(), tree(t, plain(nil))
	link(t, filepath.Join(outside, "kernels"), filepath.Join(root, "kernels"))
	set, err := Load(root, everything)
	if err != nil || len(set.Kernels) != 0 || len(set.Notes) == 0 {
		t.Errorf("%v, %v", set, err)
	}
}

func TestNamesThatAreNotUTF8AreNamed(t *testing.T) {
	for _, name := range []string{"kernels/sum/t\xffo/kernel.yaml", "kernels/m\xe9l/op.yaml"} {
		root := tree(t, plain(map[string]string{name: kernelText}))
		if _, err := Load(root, everything); err == nil || !strings.Contains(err.Error(), "is not UTF-8") || !strings.Contains(err.Error(), `\x`) {
			t.Errorf("%q: %v", name, err)
		}
	}
	root := tree(t, plain(map[string]string{"kernels/sum/d\xffta/notes.txt": ""}))
	if set, err := Load(root, everything); err != nil || len(set.Kernels) != 1 {
		t.Errorf("a folder without a kernel: %v", err)
	}
}

func TestBracketsAreLiteral(t *testing.T) {
	root := filepath.Join(tree(t, nil), "a[1]*")
	for name, text := range plain(map[string]string{"kernels/sum/k[1]/kernel.yaml": kernelText, "kernels/sum/k[1]/k.cu": ""}) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ pattern, want string }{
		{"kernels/**/kernel.yaml", "sum/k[1] sum/one"}, {"kernels/sum/k[1]/kernel.yaml", "sum/k[1]"}, {`kernels/sum/k\[1\]/*.yaml`, "sum/k[1]"}, {"kernels/sum/[o]ne/kernel.yaml", "sum/one"},
	} {
		if set, err := Load(root, []string{c.pattern}); err != nil || kernelNames(set) != c.want {
			t.Errorf("%s: %v, %v", c.pattern, set, err)
		}
	}
}

func TestLoadAllKeepsWhatIsTakenAway(t *testing.T) {
	root := tree(t, plain(nil))
	patterns := []string{"kernels/**/kernel.yaml", "!kernels/sum/**"}
	some, err := Load(root, patterns)
	all, err2 := LoadAll(root, patterns)
	if err != nil || err2 != nil || len(some.Kernels) != 0 || kernelNames(all) != "sum/one" {
		t.Errorf("%v, %v, %v, %v", some, all, err, err2)
	}
}
