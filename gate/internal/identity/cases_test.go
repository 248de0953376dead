package identity

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the builds of testdata/cases anew, with the CUDA compiler")

// A change is what a case does to the base source, and which identities must be other than the base's for it.
type change struct {
	name     string
	base     string // the case to compare with, "same" unless given
	file     string // edited; kernel.cu unless given
	old, new string // every occurrence; "" for no edit
	source   string // the name that kernel.cu is built under, if another
	args     []string
	code     bool
	host     bool
}

const launchLine = "  scale<<<blocks, kBlock, kSharedBytes, stream>>>(p, n);\n"

var changes = []change{
	// What nothing depends on.
	{name: "same"},
	{name: "no-lines", args: []string{"-DNDEBUG", "-DNO_LINES"}, host: true},
	{name: "lineinfo", args: []string{"-lineinfo"}},
	{name: "comment", old: launchLine, new: strings.TrimSpace(launchLine) + "  // a comment, and /* another */\n"},
	{name: "line-shift", base: "no-lines", old: "__constant__ float table", new: "\n\n\n/* three\nlines */\n__constant__ float table", args: []string{"-DNDEBUG", "-DNO_LINES"}},
	{name: "line-is-a-value", old: "__constant__ float table", new: "\n__constant__ float table", host: true},
	{name: "device-local", old: "int i = threadIdx.x; i < n; i += blockDim.x) {\n    staged[i] = p[i]", new: "int k = threadIdx.x; k < n; k += blockDim.x) {\n    staged[k] = p[k]"},
	{name: "white-space", old: launchLine, new: "\tscale <<< blocks,kBlock , kSharedBytes, stream >>> ( p, n ) ;\n"},
	{name: "header-comment", file: "launch.h", old: "// of dynamic", new: "// in bytes, of /* dynamic"},
	{name: "device-white-space", old: "p[i] * 0.5f;", new: "p[ i ] * /* half */ 0.5f;"},

	// What the GPU runs.
	{name: "instruction", old: "p[i] * 0.5f", new: "p[i] + 0.5f", code: true},
	{name: "literal", old: "p[i] * 0.5f", new: "p[i] * 0.25f", code: true},
	{name: "constant-table", old: "3.0f, 4.0f};", new: "3.0f, 5.0f};", code: true},
	{name: "global-value", old: "counter = 7", new: "counter = 8", code: true},
	{name: "global-size", old: "float total[8]", new: "float total[9]", code: true, host: true},
	{name: "hidden-value", old: "hidden = 3.5f", new: "hidden = 4.5f", code: true},
	{name: "local-static-value", old: "kept = 1.5f", new: "kept = 2.5f", code: true},
	{name: "shared-device-function", old: "return x * 2.0f;", new: "return x * 4.0f;", code: true},
	{name: "static-shared-size", old: "__shared__ float s[N];", new: "__shared__ float s[N + 64];", code: true},
	{name: "other-entry", old: "shift(p[threadIdx.x]);", new: "shift(p[threadIdx.x]) * 3.0f;", code: true},
	{name: "new-entry", old: "template <int N>", new: "__global__ void added(float* p) { p[0] *= 3.0f; }\n\ntemplate <int N>",
		code: true, host: true},
	{name: "inlined-helper", old: "x * hidden + 1.0f", new: "x * hidden - 1.0f", code: true},
	{name: "launch-bounds", old: "__launch_bounds__(128)", new: "__launch_bounds__(256)", code: true, host: true},
	{name: "registers", args: []string{"-maxrregcount=16"}, code: true},
	{name: "specific-target", args: []string{"-gencode", "arch=compute_90a,code=sm_90a"}, code: true},
	{name: "parameter", old: "scale(float* p, int n) {", new: "scale(float* p, long n) {", code: true, host: true},

	// Relocatable code keeps device functions in sections of their own and more names with a hash in them.
	{name: "relocatable", args: []string{"-rdc=true"}, code: true, host: true},
	{name: "relocatable-elsewhere", base: "relocatable", args: []string{"-rdc=true"}},
	{name: "relocatable-device-function", base: "relocatable", args: []string{"-rdc=true"},
		old: "return x * 2.0f;", new: "return x * 4.0f;", code: true},
	{name: "relocatable-renamed-entry", base: "relocatable", args: []string{"-rdc=true"},
		old: "internal", new: "file_local", code: true, host: true},

	// A name decides which code a launch reaches.
	{name: "renamed-entry", old: "scale", new: "multiplied", code: true, host: true},
	{name: "renamed-static-entry", old: "internal", new: "file_local", code: true, host: true},
	{name: "renamed-anonymous-entry", old: "anonymous", new: "unnamed", code: true, host: true},
	{name: "bodies-exchanged", old: "p[0] = apply(p[0])", new: "p[1] = apply(p[1])", code: true},

	// What launches it.
	{name: "block", file: "launch.h", old: "kBlock = 128", new: "kBlock = 64", host: true},
	{name: "dynamic-shared", file: "launch.h", old: "kSharedBytes = 4096", new: "kSharedBytes = 8192", host: true},
	{name: "grid", old: "(n + kBlock - 1) / kBlock;", new: "(n + kBlock) / kBlock;", host: true},
	{name: "extra-launch", old: launchLine, new: launchLine + launchLine, host: true},
	{name: "stream", old: "kSharedBytes, stream>>>", new: "kSharedBytes, nullptr>>>", host: true},
	{name: "launch-literal", old: "<<<1, 8, 0, stream>>>", new: "<<<1, 4, 0, stream>>>", host: true},
	{name: "host-string", old: "n > 0", new: "n > 1", host: true},
	{name: "header-function", file: "launch.h", old: "kBlock * kBlock;", new: "kBlock * 2 * kBlock;", host: true},
	{name: "template-argument", old: "reverse<64><<<", new: "reverse<128><<<", code: true, host: true},
}

// ids are the identities of one build.
type ids struct{ code, host string }

func identify(t *testing.T, b build, isSystem func(string) bool) ids {
	t.Helper()
	c, err := ReadCubin(b.cubin, "x.cubin", b.modules(t))
	if err != nil {
		t.Fatal(err)
	}
	host, err := Unit{b.host, b.stub}.HostID(b.modules(t), isSystem)
	if err != nil {
		t.Fatal(err)
	}
	return ids{c.ID(), host}
}

func (c change) baseName() string { return cmp.Or(c.base, "same") }

func (c change) check(t *testing.T, base, got ids) {
	t.Helper()
	for _, x := range []struct {
		what      string
		base, got string
		changed   bool
	}{
		{"code id", base.code, got.code, c.code},
		{"host id", base.host, got.host, c.host},
	} {
		if changed := x.base != x.got; changed != x.changed {
			t.Errorf("%s changed: %v, want %v", x.what, changed, x.changed)
		}
	}
}

// checkDistinct fails when two changes that must be seen are taken for each other.
func checkDistinct(t *testing.T, all map[string]ids) {
	t.Helper()
	code, host := map[string]string{}, map[string]string{}
	for _, c := range changes {
		id, ok := all[c.name]
		if !ok {
			continue
		}
		if other := code[id.code]; c.code && other != "" {
			t.Errorf("%s and %s have one code id", c.name, other)
		}
		if other := host[id.host]; c.host && other != "" {
			t.Errorf("%s and %s have one host id", c.name, other)
		}
		if c.code {
			code[id.code] = c.name
		}
		if c.host {
			host[id.host] = c.name
		}
	}
	if len(code) < 10 || len(host) < 10 {
		t.Errorf("%d code ids and %d host ids compared, want at least 10 of each", len(code), len(host))
	}
}

// TestRecordedBuilds needs no compiler: it reads the builds that -update recorded.
func TestRecordedBuilds(t *testing.T) {
	if *update {
		t.Skip("being recorded")
	}
	recorded, err := filepath.Glob("testdata/cases/*.cubin.gz")
	if err != nil || len(recorded) != len(changes) {
		t.Fatalf("%d recorded builds for %d cases: %v", len(recorded), len(changes), err)
	}
	all := map[string]ids{}
	for _, c := range changes {
		all[c.name] = identify(t, readRecorded(t, c.name), recordedSystem)
	}
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) { c.check(t, all[c.baseName()], all[c.name]) })
	}
	checkDistinct(t, all)
}

// TestBuilds compiles every case in a folder of its own.
func TestBuilds(t *testing.T) {
	if !*update {
		t.Skip("-update compiles the cases and records them")
	}
	nvcc, include := findCompiler(t)
	isSystem := systemDirs(include)
	all := map[string]ids{}
	for _, c := range changes {
		b := c.build(t, nvcc)
		if *update {
			record(t, c.name, b, isSystem)
		}
		all[c.name] = identify(t, b, isSystem)
	}
	for _, c := range changes {
		if id, ok := all[c.name]; ok {
			t.Run(c.name, func(t *testing.T) { c.check(t, all[c.baseName()], id) })
		}
	}
	checkDistinct(t, all)
}

// TestIDsTravel compares a build made here with the recorded one, made elsewhere by the same compiler.
func TestIDsTravel(t *testing.T) {
	nvcc, include := findCompiler(t)
	out, err := exec.Command(nvcc, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), recordedBy) {
		t.Skipf("recorded by %s, this is another compiler: its code may differ", recordedBy)
	}
	here := identify(t, change{}.build(t, nvcc), systemDirs(include))
	there := identify(t, readRecorded(t, "same"), recordedSystem)
	if here != there {
		t.Errorf("built here %v, recorded %v", here, there)
	}
}

const recordedBy = "V13.0.88"

func (c change) build(t *testing.T, nvcc string) build {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"kernel.cu", "launch.h"} {
		text := string(readFile(t, filepath.Join("testdata", name)))
		if name == c.file || c.file == "" && name == "kernel.cu" {
			edited := text
			if c.old != "" {
				edited = strings.ReplaceAll(text, c.old, c.new)
			}
			if c.old != "" && edited == text {
				t.Fatalf("%s: nothing to edit in %s", c.name, name)
			}
			text = edited
		}
		if name == "kernel.cu" && c.source != "" {
			name = c.source
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	source := "kernel.cu"
	if c.source != "" {
		source = c.source
	}
	return compile(t, nvcc, dir, source, c.args...)
}

func systemDirs(include string) func(string) bool {
	return func(file string) bool {
		return strings.HasPrefix(file, include) || strings.HasPrefix(file, "/usr/") || strings.Contains(file, "/../include/") || strings.Contains(file, "/..//include/")
	}
}

// recordedSystem knows the system's part of a recorded intermediate, of which only the first lines are kept.
func recordedSystem(file string) bool { return strings.HasPrefix(file, "/system/") }

func record(t *testing.T, name string, b build, isSystem func(string) bool) {
	t.Helper()
	trimmed := trimSystem(b.host, isSystem)
	m := b.modules(t)
	full, err := Unit{b.host, b.stub}.HostID(m, isSystem)
	if err != nil {
		t.Fatal(err)
	}
	if small, err := (Unit{trimmed, b.stub}).HostID(m, recordedSystem); err != nil || small != full {
		t.Fatalf("%s: trimming changed the host id: %v", name, err)
	}
	writeRecorded(t, name+".cubin.gz", b.cubin)
	writeRecorded(t, name+".cudafe1.cpp.gz", trimmed)
	writeRecorded(t, name+".stub.c.gz", b.stub)
}

// trimSystem keeps the first lines of the first parts that lie in system headers, under other names, and drops the
// rest of them.
func trimSystem(host []byte, isSystem func(string) bool) []byte {
	const keptParts, keptLines = 4, 3
	var out bytes.Buffer
	system, parts, kept, depth := false, 0, 0, 0
	for _, line := range bytes.SplitAfter(host, []byte{'\n'}) {
		if system && bytes.HasPrefix(line, []byte("#if ")) {
			depth++
		} else if system && bytes.HasPrefix(line, []byte("#endif")) && depth > 0 {
			depth--
			continue
		}
		if _, file, ok := bytes.Cut(line, []byte(` "`)); ok && depth == 0 && bytes.HasPrefix(line, []byte("# ")) {
			name, _, _ := strings.Cut(string(file), `"`)
			system, kept = isSystem(name), 0
			if system {
				parts++
				line = bytes.Replace(line, []byte(name), []byte("/system/"+filepath.Base(name)), 1)
			}
		}
		if kept++; !system || depth == 0 && parts <= keptParts && kept <= keptLines {
			out.Write(line)
		}
	}
	return out.Bytes()
}

func writeRecorded(t *testing.T, name string, data []byte) {
	t.Helper()
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata/cases", name), out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

func readRecorded(t testing.TB, name string) build {
	t.Helper()
	read := func(file string) []byte {
		z, err := gzip.NewReader(bytes.NewReader(readFile(t, filepath.Join("testdata/cases", file))))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return build{read(name + ".cubin.gz"), read(name + ".cudafe1.cpp.gz"), read(name + ".stub.c.gz")}
}
