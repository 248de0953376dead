package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/manifest"
)

// findText is a program that finds a library of that version.
func findText(version string) string {
	return fmt.Sprintf(`import json
print(json.dumps({"versions": {"sums": %q}, "compile": ["-DFOUND=1"], "link": ["-lm"], "read": ["/usr/lib"]}))
`, version)
}

// newReference is a reference to a library of version 1.
func newReference(t *testing.T, find string) (root string, k *manifest.Kernel) {
	t.Helper()
	t.Setenv("PATH", "/usr/bin:/bin") // one that a confined program may read, no wrapper in somebody's home
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 of the system")
	}
	root = t.TempDir()
	dir := filepath.Join(root, "kernels", "ref")
	write(t, filepath.Join(dir, "ref.cc"), "#if FOUND && CHOICE\nextern \"C\" int gate_run() { return 0; }\n#endif\n")
	write(t, filepath.Join(dir, "find.py"), find)
	return root, &manifest.Kernel{Name: "ref", Dir: dir, File: "kernels/ref/kernel.yaml", Sources: []string{"ref.cc"}, Arch: []string{"sm_90"},
		Flags: []string{"-DCHOICE=1"}, Library: manifest.Library{Find: "find.py", Versions: map[string]string{"sums": "1"}}}
}

func TestReferenceIsBuiltWhereItIsMeasured(t *testing.T) {
	root, k := newReference(t, findText("1"))
	b := newBuilder(t, t.TempDir())
	a := mustBuild(t, filepath.Dir(b.Cache), root, k)
	if a.Library != "" || !a.Identity.Known() || a.Compiler != "sums 1" {
		t.Fatalf("%+v", a)
	}
	if err := b.Complete(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	if why := checkLibrary(a.Library); why != "" || !slices.Contains(a.Loads, "/usr/lib") {
		t.Errorf("%s %s, loads %v", a.Library, why, a.Loads)
	}
}

// A machine without the library has the identity all the same, and says what is
// missing.
func TestReferenceThatIsNotHere(t *testing.T) {
	for _, c := range []struct{ name, find, want string }{
		{"another version", findText("2"), `ref needs sums 1, and "2" is installed here`},
		{"not installed", "import a_module_that_nobody_has\n", "the library of ref is not installed here: ModuleNotFoundError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, k := newReference(t, c.find)
			b := newBuilder(t, t.TempDir())
			a := mustBuild(t, filepath.Dir(b.Cache), root, k)
			var missing *UnavailableError
			if err := b.Complete(context.Background(), a); !errors.As(err, &missing) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if !a.Identity.Known() || a.Library != "" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// All that goes into a reference is in its identity.
func TestReferenceIdentity(t *testing.T) {
	root, k := newReference(t, findText("1"))
	b := newBuilder(t, t.TempDir())
	identity := func() string {
		a, err := b.reference(b.places(root), k, "sm_90")
		if err != nil {
			t.Fatal(err)
		}
		return a.Identity.Code + a.Identity.Host
	}
	seen := map[string]string{identity(): "nothing"}
	for what, change := range map[string]func(){
		"a version":  func() { k.Library.Versions["sums"] = "1.1" },
		"a flag":     func() { k.Flags = []string{"-DCHOICE=2"} },
		"a source":   func() { appendTo(t, filepath.Join(k.Dir, "ref.cc")) },
		"the finder": func() { appendTo(t, filepath.Join(k.Dir, "find.py")) },
	} {
		change()
		b.hashes = openHasher(filepath.Join(t.TempDir(), "files.json"))
		if id := identity(); seen[id] != "" {
			t.Errorf("changing %s leaves the identity as after changing %s", what, seen[id])
		} else {
			seen[id] = what
		}
	}
}

func appendTo(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(data)+"\n#\n")
}
