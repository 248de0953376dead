package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nvccBanner is the whole answer of nvcc 13.0 to --version.
const nvccBanner = `nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2025 NVIDIA Corporation
Built on Wed_Aug_20_01:58:59_PM_PDT_2025
Cuda compilation tools, release 13.0, V13.0.88
Build cuda_13.0.r13.0/compiler.36424714_0
`

// gxxBanner is how Debian's g++ answers.
const gxxBanner = `g++ (Debian 12.2.0-14+deb12u1) 12.2.0
Copyright (C) 2022 Free Software Foundation, Inc.
`

// script is a program that notes each call in a file beside it and prints text.
func script(text string) string {
	return "#!/bin/sh\necho call >>\"$0.calls\"\ncat <<'EOF'\n" + text + "EOF\n"
}

// write makes a file with its folders.
func write(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// fakeCUDA fills root like a small toolkit whose programs say they are build.
func fakeCUDA(t *testing.T, root, build string) string {
	t.Helper()
	text := strings.ReplaceAll(nvccBanner, pinnedBuild, build)
	write(t, filepath.Join(root, "bin/nvcc"), script(text), 0o755)
	write(t, filepath.Join(root, "bin/ptxas"), script(text), 0o755)
	write(t, filepath.Join(root, "bin/cuobjdump"), script(text), 0o755)
	write(t, filepath.Join(root, "nvvm/bin/cicc"), "cicc "+build, 0o755)
	write(t, filepath.Join(root, "include/cuda_runtime.h"), "// header\n", 0o644)
	write(t, filepath.Join(root, "include/cccl/cuda/std/type_traits"), "// header\n", 0o644)
	write(t, filepath.Join(root, "lib/libcudart_static.a"), "!<arch>\n", 0o644)
	return root
}

// fakeWheels fills dir as pip would from the wheels of the lock file.
func fakeWheels(t *testing.T, dir, build string) string {
	t.Helper()
	root := fakeCUDA(t, rootIn(dir), build)
	for _, name := range vital {
		path := filepath.Join(root, strings.Replace(name, "lib64/", "lib/", 1))
		if _, err := os.Stat(path); err != nil {
			write(t, path, "some bytes of "+name+"\n", 0o755)
		}
	}
	return dir
}

// fakePython stands in for python3 with pip: it notes its calls, waits for
// the file go, and copies a tree to where --target points.
func fakePython(t *testing.T, path, tree string) string {
	t.Helper()
	return write(t, path, fmt.Sprintf(`#!/bin/sh
echo "$*" >>%[1]q.calls
case "$*" in
"-c import sys, pip"*) echo "$0"; exit 0 ;;
esac
while [ $# -gt 0 ]; do
	[ "$1" = --target ] && target=$2
	shift
done
mkdir -p "$target"
echo half >"$target/half"
echo $$ >%[1]q.pid
while [ ! -e %[1]q.go ]; do sleep 0.02; done
rm "$target/half"
cp -r %[2]q/. "$target"
echo "Successfully installed a toolchain"
`, path, tree), 0o755)
}

// environment is an environment with only these variables, given as pairs.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// calls counts how often a fake program was started.
func calls(t *testing.T, program string) int {
	t.Helper()
	data, err := os.ReadFile(program + ".calls")
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}
