package manifest

import (
	"strings"
	"testing"
)

const libraryText = `op: sum
sources: [call.cc]
library:
  find: find.py
  versions: {sums: "1.2"}
arch: [sm_90]
cases: [small]
`

func TestLibraryIsAReferenceOnly(t *testing.T) {
	root := tree(t, plain(map[string]string{"kernels/sum/lib/kernel.yaml": libraryText, "kernels/sum/lib/call.cc": "", "kernels/sum/lib/find.py": ""}))
	set, err := Load(root, everything)
	if err != nil {
		t.Fatal(err)
	}
	if kernelNames(set) != "sum/one" {
		t.Errorf("%s is judged", kernelNames(set))
	}
	k, err := set.Named("sum/lib")
	if err != nil || !k.Library.Declared() || k.Library.Versions["sums"] != "1.2" {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestLibraryRefuses(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"device code", "call.cc", "call.cu", `2: "call.cu" is not the name of a .cc file`},
		{"entries", "arch:", "entries: [x]\narch:", "3: a library has neither entries nor include, objects or libraries: its sources only call it"},
		{"no finder", "find.py", "lost.py", `4: no file "lost.py" in this folder`},
		{"outside", "find.py", "../../../../find.py", `4: "../../../../find.py" lies outside the repository`},
		{"no version", `{sums: "1.2"}`, "{}", "5: versions needs at least one name and version: they are what the library is known by"},
		{"a strange version", `"1.2"`, `"1 2"`, `5: "sums": "1 2" is not a name with a version such as torch: 2.11.0+cu130`},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, plain(map[string]string{
				"kernels/sum/lib/kernel.yaml": strings.Replace(libraryText, c.from, c.to, 1),
				"kernels/sum/lib/call.cc":     "", "kernels/sum/lib/call.cu": "", "kernels/sum/lib/find.py": ""}))
			wantError(t, root, "kernels/sum/lib/kernel.yaml:"+c.want, "")
		})
	}
}
