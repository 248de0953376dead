package nvccflags

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const kernelText = `__global__ void __launch_bounds__(32) k(int* x) { x[threadIdx.x] += 1; }
extern "C" int run(int* x) { k<<<1, 32, 0, 0>>>(x); return 0; }
`

// A bench is a folder with a source, and the compiler.
type bench struct {
	t              *testing.T
	dir, nvcc, bin string
	cxx            string
}

func newBench(t *testing.T) *bench {
	t.Parallel()
	tc, bin := compiler(t)
	b := &bench{t: t, dir: t.TempDir(), nvcc: tc.NVCC, bin: bin, cxx: tc.HostCompiler}
	if err := os.WriteFile(filepath.Join(b.dir, "k.cu"), []byte(kernelText), 0o644); err != nil {
		t.Fatal(err)
	}
	return b
}

// run starts a program in the folder, with nothing in its environment but PATH
// and what more says.
func (b *bench) run(more []string, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = b.dir, append([]string{"PATH=" + b.bin + ":/usr/bin:/bin", "TMPDIR=" + b.dir}, more...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (b *bench) must(program string, args ...string) string {
	b.t.Helper()
	out, err := b.run(nil, program, args...)
	if err != nil {
		b.t.Errorf("%s %q: %v\n%s", filepath.Base(program), args, err, out)
	}
	return out
}

var temporary = regexp.MustCompile(`tmpxft_[0-9a-f]+_[0-9a-f]+-`)

// plan is what nvcc would do with these flags, as gate gives them.
func (b *bench) plan(flags []string) string {
	b.t.Helper()
	args := append([]string{"--dryrun", "-std=c++17", "-ccbin", b.cxx}, flags...)
	args = append(args, "-gencode", "arch=compute_90,code=sm_90", "-shared", "-o", "lib.so", "./k.cu")
	return temporary.ReplaceAllString(b.must(b.nvcc, args...), "tmp-")
}

// sample is a value that an option accepts.
func sample(o *option) string {
	switch v := o.value; {
	case v.phase == &ptxas:
		return "-O2,-v"
	case v.phase == &nvlink:
		return "-v,-extrawarn"
	case v.phase == &hostCompiler:
		return "-Wall,-O2"
	case v.phase == &hostLinker:
		return "-z,defs,--as-needed"
	}
	for _, word := range append(strings.FieldsFunc(o.value.shown, func(r rune) bool { return r == '|' || r == ' ' }), "7") {
		if o.value.ok(word) {
			return word
		}
	}
	panic(o.names[0] + ": no value is known that it accepts")
}

// spellings are all the ways in which an option with a value can be written.
func spellings(o *option, v string) [][]string {
	var out [][]string
	for _, name := range o.names {
		switch {
		case v == "":
			out = append(out, []string{name})
		case o.glue&joined != 0 && len(name) == 2:
			out = append(out, []string{name + v})
		}
		if v != "" && o.glue&equals != 0 {
			out = append(out, []string{name + "=" + v})
		}
		if v != "" && o.glue&apart != 0 {
			out = append(out, []string{name, v})
		}
	}
	return out
}

// TestEverySpellingMeansTheSameToTheCompiler holds the parser and nvcc
// together: what Check accepts nvcc takes as that option, and as nothing else.
func TestEverySpellingMeansTheSameToTheCompiler(t *testing.T) {
	b := newBench(t)
	without, checked := b.plan(nil), 0
	for i := range nvcc.options {
		o := &nvcc.options[i]
		if o.refused != "" {
			continue
		}
		v := ""
		if o.value.shown != "" {
			v = sample(o)
		}
		ways := spellings(o, v)
		first := b.plan(ways[0])
		if o.changes == 0 && first != without {
			t.Errorf("%s changes what nvcc does", o.names[0])
		}
		checkChanges(t, o, without, first)
		for _, other := range values(o) {
			b.plan(spellings(o, other)[0])
		}
		for _, way := range ways {
			if r := Check(way); r != nil {
				t.Errorf("%q is refused: %s", way, r.Msg)
			}
			if b.plan(way) != first {
				t.Errorf("%q means something else than %q", way, ways[0])
			}
			checked++
		}
	}
	if checked < 150 {
		t.Errorf("only %d spellings were checked", checked)
	}
}

// checkChanges holds the column "may change" against the commands that become
// others: cicc, ptxas and nvlink make the device's code, the rest the host's;
// a first g++ -E reads the device's side.
func checkChanges(t *testing.T, o *option, without, with string) {
	t.Helper()
	if o.changes == messages {
		return // TestMessagesChangeNoCode
	}
	var seen changes
	old := strings.Split(without, "\n")
	for _, line := range strings.Split(with, "\n") {
		command := strings.TrimPrefix(line, "#$ ")
		if slices.Contains(old, line) || !strings.HasPrefix(line, "#$ ") {
			continue
		}
		program, _, _ := strings.Cut(command, " ")
		switch program = strings.Trim(filepath.Base(program), `"`); {
		case program == "cicc" || program == "ptxas" || program == "nvlink":
			seen |= device
		case strings.Contains(command, "-D__CUDA_ARCH__=") && strings.Contains(command, " -E "):
			seen |= device | inputs
		case strings.Contains(command, " -E "):
			seen |= host | inputs
		case program == "cudafe++" || program == "g++" || program == "gcc":
			seen |= host
		}
	}
	if o.names[0] == "--debug" || o.names[0] == "--frandom-seed" {
		seen = host // g++ -E has them too, and sets no macro for them
	}
	if missing := seen &^ o.changes; missing != 0 {
		t.Errorf("%s may change %s too", o.names[0], missing)
	}
}

// TestMessagesChangeNoCode compiles with all options at once that are said to
// change messages alone.
func TestMessagesChangeNoCode(t *testing.T) {
	b := newBench(t)
	var flags []string
	for i := range nvcc.options {
		if o := &nvcc.options[i]; o.refused == "" && o.changes == messages {
			v := ""
			if o.value.shown != "" {
				v = sample(o)
			}
			flags = append(flags, spellings(o, v)[0]...)
		}
	}
	if len(flags) < 10 {
		t.Fatalf("only %q", flags)
	}
	without := []string{"--generate-line-info", "--source-in-ptx", // debug sections, left out of identities
		"--no-display-error-number"} // nvcc refuses it beside its opposite
	flags = slices.DeleteFunc(flags, func(f string) bool { return slices.Contains(without, f) })
	made := func(flags []string) string {
		flags = append(flags, "-ccbin", b.cxx, "-gencode", "arch=compute_90,code=sm_90", "./k.cu")
		b.must(b.nvcc, append([]string{"-c", "-o", "k.o"}, flags...)...)
		b.must(b.nvcc, append([]string{"-cubin", "-o", "k.cubin"}, flags...)...)
		return b.sections("k.o") + b.sections("k.cubin")
	}
	if plain, flagged := made(nil), made(flags); plain != flagged || plain == "" {
		t.Errorf("%d and %d bytes of code are not equal with %q", len(plain), len(flagged), flags)
	}
}

// sections is what is loaded of an object: without the fatbin, which holds the
// cubin again, and the notes, which hold the command of ptxas.
func (b *bench) sections(name string) string {
	b.t.Helper()
	f, err := elf.Open(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	var out strings.Builder
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NOTE || s.Name == ".nv_fatbin" || strings.HasPrefix(s.Name, ".debug") {
			continue
		}
		data, err := s.Data()
		if err != nil {
			b.t.Fatal(err)
		}
		if strings.HasPrefix(s.Name, ".text") || strings.HasPrefix(s.Name, ".nv.") || s.Flags&elf.SHF_ALLOC != 0 {
			fmt.Fprintf(&out, "%s %x\n", s.Name, data)
		}
	}
	return out.String()
}

// TestPhasesTakeTheirOptions runs each program with each accepted option.
func TestPhasesTakeTheirOptions(t *testing.T) {
	b := newBench(t)
	b.must(b.nvcc, "-arch=compute_90", "-ptx", "-ccbin", b.cxx, "k.cu", "-o", "k.ptx")
	b.must(b.nvcc, "-rdc=true", "-gencode", "arch=compute_90,code=sm_90", "-cubin", "-ccbin", b.cxx, "k.cu", "-o", "k.cubin")
	if err := os.WriteFile(filepath.Join(b.dir, "h.cc"), []byte("extern \"C\" int run() { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.must(b.cxx, "-fPIC", "-c", "h.cc", "-o", "h.o")
	takes := map[*table]func(words []string){
		&ptxas: func(w []string) {
			b.must(filepath.Join(b.bin, "ptxas"), append(w, "-arch=sm_90", "k.ptx", "-o", "out")...)
		},
		&nvlink: func(w []string) {
			b.must(filepath.Join(b.bin, "nvlink"), append(w, "-arch=sm_90", "k.cubin", "-o", "out")...)
		},
		&hostCompiler: func(w []string) { b.must(b.cxx, append(w, "-c", "h.cc", "-o", "out")...) },
		&hostLinker: func(w []string) {
			args := []string{"-shared", "h.o", "-o", "out"}
			for _, word := range w {
				args = append(args, "-Xlinker", word)
			}
			b.must(b.cxx, args...)
		},
	}
	for table, run := range takes {
		for i := range table.options {
			o := &table.options[i]
			if o.refused != "" || o.names[0] == "-W" {
				continue
			}
			for _, v := range values(o) {
				for _, words := range spellings(o, v) {
					if r := table.all(words); r != nil {
						t.Errorf("%q is refused: %s", words, r.Msg)
					}
					run(words)
				}
			}
		}
	}
	b.must(b.cxx, append(everyWarning(), "-c", "h.cc", "-o", "out")...)
}

// values are all that an option accepts, or one where there is no list.
func values(o *option) []string {
	if o.value.shown == "" {
		return []string{""}
	}
	words := strings.Split(o.value.shown, "|")
	if o.names[0] == "-march" && runtime.GOARCH == "amd64" {
		words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "arm") })
	}
	if len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return !o.value.ok(w) }) {
		return words
	}
	return []string{sample(o)}
}

func everyWarning() []string {
	var out []string
	for _, name := range strings.Split(strings.Trim(strings.TrimPrefix(warnings(), "error|no-error|fatal-errors|(no-|error=|no-error=)?"), "()"), "|") {
		out = append(out, "-W"+name, "-Wno-error="+name, "-Wno-"+name)
	}
	return append(out, "-Werror", "-Wno-error", "-Wfatal-errors")
}
