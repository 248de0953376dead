package build

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

var (
	editCount = flag.Int("edits", 30, "how many edits TestEdits draws; more than 60 draw from the shipped kernels too, as many at once as -test.parallel says")
	editSeed  = flag.Uint64("edit-seed", 1, "the seed of TestEdits")
)

// A tree is the text of a kernel's folder, and what its kernel.yaml says.
type tree struct {
	name   string
	files  map[string]string // below the kernel's folder
	kernel manifest.Kernel
	rows   string // C++ of an object or a library, "" for none
}

func (tr tree) clone() tree {
	tr.files = maps.Clone(tr.files)
	tr.kernel.Flags, tr.kernel.Include = slices.Clone(tr.kernel.Flags), slices.Clone(tr.kernel.Include)
	return tr
}

// An edit changes a tree, or returns false where it finds nothing to change.
// What is harmless must not change an identity.
type edit struct {
	kind     string
	harmless bool
	apply    func(r *rand.Rand, tr *tree) bool
}

// in replaces one occurrence of a text in one of the files that have it.
func in(r *rand.Rand, tr *tree, pattern string, with func(found string) string) bool {
	expr := regexp.MustCompile(pattern)
	type place struct {
		file string
		at   []int
	}
	var places []place
	for _, file := range slices.Sorted(maps.Keys(tr.files)) {
		for _, at := range expr.FindAllStringIndex(tr.files[file], -1) {
			places = append(places, place{file, at})
		}
	}
	if len(places) == 0 {
		return false
	}
	p := places[r.IntN(len(places))]
	text := tr.files[p.file]
	found := text[p.at[0]:p.at[1]]
	tr.files[p.file] = text[:p.at[0]] + with(found) + text[p.at[1]:]
	return tr.files[p.file] != text
}

func replace(pattern string, candidates ...string) func(*rand.Rand, *tree) bool {
	return func(r *rand.Rand, tr *tree) bool {
		return in(r, tr, pattern, func(string) string { return candidates[r.IntN(len(candidates))] })
	}
}

func exchange(a, b string) func(*rand.Rand, *tree) bool {
	return func(_ *rand.Rand, tr *tree) bool {
		done := false
		for file, text := range tr.files {
			if strings.Contains(text, a) && strings.Contains(text, b) {
				text = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, a, "\x00"), b, a), "\x00", b)
				tr.files[file], done = text, true
			}
		}
		return done
	}
}

func everyFile(change func(string) string) func(*rand.Rand, *tree) bool {
	return func(r *rand.Rand, tr *tree) bool {
		names := slices.Sorted(maps.Keys(tr.files))
		file := names[r.IntN(len(names))]
		before := tr.files[file]
		tr.files[file] = change(before)
		return tr.files[file] != before
	}
}

// flags are one of each kind that the tables accept.
var flags = []string{"-O1", "-O0", "-DUNUSED", "-DSCALE=900", "-DNDEBUG", "-UNDEBUG", "-std=c++20", "-maxrregcount=16", "-use_fast_math", "-ftz=true", "-fmad=false",
	"-prec-div=false", "-Xptxas=-O1", "-Xptxas=-dlcm=cg", "-Xcompiler=-O1", "-Xcompiler=-DSCALE=700", "-Xcompiler=-fno-inline", "-Xcompiler=-funsigned-char",
	"-Xlinker=-O1", "-Xlinker=-Bsymbolic", "-default-stream=per-thread", "-extra-device-vectorization", "-restrict", "-G", "-extended-lambda",
	"-no-compress", "-keep-device-functions", "-Xptxas=-maxntid=64"}

// grammar is the list of what an author can do. The shipped kernels take part
// with those edits that find something in their text.
var grammar = []edit{
	{"device expression", false, replace(`\* 2\.0f|\+ 1\.0f`, "* 3.0f", "- 1.0f", "+ 4.0f")},
	{"number", false, func(r *rand.Rand, tr *tree) bool {
		return in(r, tr, `\b[0-9]+\b`, func(string) string { return fmt.Sprint(r.IntN(64)) })
	}},
	{"floating number", false, func(r *rand.Rand, tr *tree) bool {
		return in(r, tr, `\b[0-9]+\.[0-9]+f?\b`, func(string) string { return fmt.Sprintf("%d.5f", r.IntN(9)) })
	}},
	{"operator", false, replace(` [-+*] `, " + ", " - ", " * ")},
	{"comparison", false, replace(` (<|>|<=|>=|==) `, " < ", " > ", " <= ", " == ")},
	{"template argument", false, replace(`<(64|32|true|false)>`, "<16>", "<8>", "<true>", "<false>")},
	{"branch of a template", false, replace(`if constexpr \(Causal\)`, "if constexpr (!Causal)")},
	{"bodies exchanged", false, exchange("left(", "right(")},
	{"tables exchanged", false, exchange("1.0f, 2.0f", "5.0f, 6.0f")},
	{"table", false, replace(`[56]\.0f\};`, "9.0f};", "8.0f};")},
	{"constant", false, replace(`kBlock = [0-9]+`, "kBlock = 96", "kBlock = 48")},
	{"kernel that entries leaves out", false, replace(`= 40\.0f;`, "= 41.0f;")},
	{"launch order", false, exchange("left<<<1", "right<<<1")},
	{"launch arguments", false, replace(`<<<1, `, "<<<2, ", "<<<3, ")},
	{"launch bounds", false, replace(`__launch_bounds__\([0-9]+\)`, "__launch_bounds__(256)", "__launch_bounds__(512)")},
	{"host helper", false, replace(`return n / 4;`, "return n / 2;", "return n / 4 + 1;")},
	{"host string", false, replace(`"host"`, `"other"`)},
	{"value of the line", false, everyFile(func(s string) string { return "\n" + s })},
	{"header that shadows", false, func(r *rand.Rand, tr *tree) bool {
		if tr.files["include/size.h"] == "" {
			return false
		}
		tr.files["size.h"] = "#define SIZE 77\n"
		return true
	}},
	{"header that __has_include finds", false, func(r *rand.Rand, tr *tree) bool {
		tr.files["extra.h"] = "#define EXTRA 3.0f\n"
		return tr.name != "shipped"
	}},
	{"header that only nvcc's own files read", false, func(r *rand.Rand, tr *tree) bool {
		// Those files are compiled with the kernel's folder among the folders of headers.
		place := []string{"", "include/", "first/"}[r.IntN(3)]
		name := []string{"fatbinary_section.h", "crt/host_defines.h", "stddef.h"}[r.IntN(3)]
		tr.files[place+name] = fmt.Sprintf("#pragma once\n#include_next <%s>\n#ifdef FATBINFILE\nstatic int late = %d;\nstatic __attribute__((constructor)) void count() { ++late; }\n#endif\n", name, r.IntN(99))
		return tr.name != "shipped"
	}},
	{"macro before a header of the system", false, everyFile(func(s string) string {
		return strings.Replace(s, "#include <cassert>", "#define NDEBUG\n#include <cassert>", 1)
	})},
	{"units exchanged", false, func(r *rand.Rand, tr *tree) bool {
		a, b := tr.files["a.cu"], tr.files["b.cu"]
		one, two := between(a), between(b)
		if one == "" || two == "" {
			return false
		}
		tr.files["a.cu"], tr.files["b.cu"] = strings.Replace(a, one, two, 1), strings.Replace(b, two, one, 1)
		return true
	}},
	{"order of the sources", false, func(r *rand.Rand, tr *tree) bool {
		tr.kernel.Sources = slices.Clone(tr.kernel.Sources)
		slices.Reverse(tr.kernel.Sources)
		return len(tr.kernel.Sources) > 1
	}},
	{"rename of a kernel", false, func(r *rand.Rand, tr *tree) bool {
		for file, text := range tr.files {
			tr.files[file] = regexp.MustCompile(`\bright\b`).ReplaceAllString(text, "starboard")
		}
		return tr.name != "shipped"
	}},
	{"flag", false, func(r *rand.Rand, tr *tree) bool {
		tr.kernel.Flags = append(tr.kernel.Flags, flags[r.IntN(len(flags))])
		return true
	}},
	{"flag removed", false, func(r *rand.Rand, tr *tree) bool {
		if len(tr.kernel.Flags) == 0 {
			return false
		}
		i := r.IntN(len(tr.kernel.Flags))
		tr.kernel.Flags = slices.Delete(tr.kernel.Flags, i, i+1)
		return true
	}},
	{"order of include", false, func(r *rand.Rand, tr *tree) bool {
		slices.Reverse(tr.kernel.Include)
		return len(tr.kernel.Include) > 1
	}},
	{"object or library", false, func(r *rand.Rand, tr *tree) bool {
		before := tr.rows
		tr.rows = strings.Replace(tr.rows, "return 11;", fmt.Sprintf("return %d;", 12+r.IntN(50)), 1)
		return tr.rows != before
	}},
	{"comment", true, func(r *rand.Rand, tr *tree) bool {
		return in(r, tr, `(?m);$`, func(s string) string { return s + "  // what /* it \" does" })
	}},
	{"comment of a line", true, inLines("/* one */ // two", false)},
	{"lines", true, inLines("", true)},
	{"white space", true, func(r *rand.Rand, tr *tree) bool {
		return in(r, tr, ` (=|\+|\*|<) `, func(s string) string { return "  \t" + strings.TrimSpace(s) + "   " })
	}},
	{"line ends", true, everyFile(func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") })},
	{"-lineinfo", true, func(r *rand.Rand, tr *tree) bool {
		tr.kernel.Flags = append(tr.kernel.Flags, []string{"-lineinfo", "--generate-line-info"}[r.IntN(2)])
		return true
	}},
	{"header that is not included", true, func(r *rand.Rand, tr *tree) bool {
		tr.files[[]string{"other.h", "include/other.cuh", "README.md"}[r.IntN(3)]] = fmt.Sprintf("#define SIZE %d\n", r.IntN(99))
		return true
	}},
	{"name of a local variable", true, func(r *rand.Rand, tr *tree) bool {
		done := false
		for file, text := range tr.files {
			tr.files[file] = regexp.MustCompile(`\blocal_value\b`).ReplaceAllString(text, fmt.Sprintf("v%d", r.IntN(99)))
			done = done || tr.files[file] != text
		}
		return done
	}},
	{"entries", true, func(r *rand.Rand, tr *tree) bool {
		tr.kernel.Entries = nil
		return tr.name != "shipped"
	}},
}

// inLines puts a line between two others of a tree that does not ask for its
// lines' numbers.
func inLines(line string, many bool) func(*rand.Rand, *tree) bool {
	return func(r *rand.Rand, tr *tree) bool {
		for _, text := range tr.files {
			if strings.Contains(text, "__LINE__") || strings.Contains(text, "assert(") {
				return false
			}
		}
		return in(r, tr, `(?m);\n(?:[^#\\]*)$`, func(s string) string {
			if many {
				return strings.Replace(s, "\n", "\n\n\n\n", 1)
			}
			return strings.Replace(s, "\n", "\n"+line+"\n", 1)
		})
	}
}

func between(text string) string {
	_, rest, ok := strings.Cut(text, "// {\n")
	body, _, end := strings.Cut(rest, "// }\n")
	if !ok || !end {
		return ""
	}
	return body
}

const toyUnit = `#include <cassert>
#include <cstdio>
#include "size.h"
#ifdef __has_include
#if __has_include("extra.h")
#include "extra.h"
#endif
#endif
#ifndef EXTRA
#define EXTRA 2.0f
#endif
#ifndef SCALE
#define SCALE 3
#endif
namespace {
__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ float rows[4] = {5.0f, 6.0f, 7.0f, 6.0f};
constexpr int kBlock = 64;
template <bool Causal> __global__ void masked(float* p) {
  float local_value = p[threadIdx.x];
  if constexpr (Causal) local_value *= 7.0f;
  p[threadIdx.x] = local_value * 2.0f + table[threadIdx.x & 3];
}
}
__global__ void __launch_bounds__(128) left(float* p) { p[threadIdx.x] = p[threadIdx.x] * 2.0f + rows[threadIdx.x & 3]; }
__global__ void __launch_bounds__(128) right(float* p) { p[threadIdx.x] = p[threadIdx.x] + 1.0f * EXTRA; }
__global__ void hidden(float* p) { p[0] = 40.0f; }
static int quarter(int n) { return n / 4; }
static const char* where() { return "host"; }
HELPER
extern "C" int gate_run(float* p) {
  left<<<1, kBlock>>>(p);
  right<<<1, SIZE>>>(p);
  masked<true><<<1, 32>>>(p);
  masked<false><<<1, 32>>>(p);
  hidden<<<1, 1>>>(p);
  assert(p != nullptr);
  if (quarter(SCALE) > 100) puts(where());
  return TAIL;
}
`

const twoUnits = `#include "size.h"
// {
static __global__ void same(float* p) { p[threadIdx.x] = p[threadIdx.x] BODY; }
// }
__device__ float helper_NAME(float x) { float local_value = x * SIZE + 1.0f; return local_value; }
int launch_NAME(float* p) { same<<<1, 64>>>(p); return 0; }
`

func toys() []tree {
	kernel := manifest.Kernel{Name: "op/k", File: "k/kernel.yaml", Arch: []string{"sm_90"}, Include: []string{"first", "include"}, Flags: []string{"-O2", "-DPLAIN"}}
	unit := func(helper, tail string) string {
		return strings.NewReplacer("HELPER", helper, "TAIL", tail).Replace(toyUnit)
	}
	lines := kernel
	lines.Sources, lines.Entries = []string{"k.cu"}, []string{"left", "right", "masked"}
	plain := lines
	header := map[string]string{"include/size.h": "#define SIZE 64\n", "first/unused.h": "#define SIZE 65\n"}
	one := tree{name: "lines", kernel: lines, files: maps.Clone(header)}
	one.files["k.cu"] = unit("static int at() { return __LINE__; }", "at()")
	two := tree{name: "plain", kernel: plain, files: maps.Clone(header)}
	two.files["k.cu"] = strings.ReplaceAll(strings.ReplaceAll(unit("extern \"C\" int rows_of();", "rows_of()"), "  assert(p != nullptr);\n", ""), "#include <cassert>\n", "")
	two.rows = "extern \"C\" int rows_of() { return 11; }\n"
	pair := tree{name: "pair", kernel: kernel, files: maps.Clone(header)}
	pair.kernel.Sources = []string{"a.cu", "b.cu"}
	pair.files["a.cu"] = strings.NewReplacer("BODY", "* 2.0f", "NAME", "a").Replace(twoUnits) +
		"int launch_b(float*);\nextern \"C\" int gate_run(float* p) { return launch_a(p) + launch_b(p); }\n"
	pair.files["b.cu"] = strings.NewReplacer("BODY", "+ 1.0f", "NAME", "b").Replace(twoUnits)
	rdc := pair.clone()
	rdc.name, rdc.kernel.Flags = "rdc", append(rdc.kernel.Flags, "-rdc=true")
	rdc.files["a.cu"] = "__device__ float helper_b(float);\n__global__ void calls(float* p) { p[0] = helper_b(p[1]); }\n" +
		strings.Replace(rdc.files["a.cu"], "return launch_a(p)", "calls<<<1, 1>>>(p); return launch_a(p)", 1)
	return []tree{one, two, pair, rdc}
}

// shipped are the kernels of this repository.
func shipped(t *testing.T) []tree {
	set, err := manifest.Load("../../..", []string{"kernels/**/kernel.yaml"})
	if err != nil || len(set.Kernels) < 3 {
		t.Fatalf("%+v, %v", set, err)
	}
	var list []tree
	for _, k := range set.Kernels {
		if len(k.Sources) != 1 || strings.Contains(k.Sources[0], "/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(k.Dir, k.Sources[0]))
		if err != nil {
			t.Fatal(err)
		}
		if header, err := os.ReadFile(filepath.Join(k.Dir, "../attention.h")); err == nil {
			list = append(list, tree{name: "shipped", kernel: *k, files: map[string]string{k.Sources[0]: string(text), "../attention.h": string(header)}})
		}
	}
	return list
}

// A bench builds trees, all at one place, so that nothing but an edit differs.
type bench struct {
	root  string
	cache string
	bases map[string]built
	draws int
}

// drawsOfCache is how many edits share a cache, which is emptied then: a long run
// would fill the disk.
const drawsOfCache = 20

type built struct {
	id    evidence.Identity
	truth string
}

var errRefused = errors.New("refused")

func (w *bench) build(t *testing.T, tr tree) (built, error) {
	dir := filepath.Join(w.root, "k")
	if err := os.RemoveAll(dir); err != nil {
		return built{}, err
	}
	k := tr.kernel
	k.Dir = dir
	if k.Op != nil { // of a shipped kernel, whose headers lie above it
		op := *k.Op
		op.Dir, k.Op = w.root, &op
	}
	for name, text := range tr.files {
		write(t, filepath.Join(dir, name), text)
	}
	var linked []string
	if tr.rows != "" {
		write(t, filepath.Join(dir, "rows.cc"), tr.rows)
		cmd := exec.Command(tools(t).HostCompiler, "-O1", "-fPIC", "-c", "rows.cc", "-o", "rows.o")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return built{}, fmt.Errorf("%w: %s", err, out)
		}
		k.Objects, linked = []string{"rows.o"}, []string{filepath.Join(dir, "rows.o")}
	}
	b, err := New(tools(t), w.cache, w.include(t))
	if err != nil {
		return built{}, err
	}
	var out built
	b.left = func(tmp string) {
		out.truth = truth(t, tmp, k.Sources, slices.Contains(k.Flags, "-rdc=true"), linked...)
	}
	r := b.Build(context.Background(), w.root, []*manifest.Kernel{&k})
	var compile *CompileError
	var input *InputError
	if errors.As(r[0].Err, &compile) {
		return out, fmt.Errorf("%w: %v\n%s", errRefused, compile, compile.Output)
	}
	if errors.As(r[0].Err, &input) {
		return out, fmt.Errorf("%w: %v", errRefused, input)
	}
	if r[0].Err != nil {
		return out, r[0].Err
	}
	out.id = r[0].Artifact.Identity
	if !r[0].Artifact.Cached {
		return out, nil
	}
	// What the cache says is held against a build without it.
	cached := w.cache
	if w.cache, err = os.MkdirTemp(w.root, "cache-"); err != nil {
		return out, err
	}
	defer func() {
		os.RemoveAll(w.cache)
		w.cache = cached
	}()
	fresh, err := w.build(t, tr)
	if err == nil && fresh.id != out.id {
		err = fmt.Errorf("the cache says %v, a build %v", out.id, fresh.id)
	}
	return fresh, err
}

func (w *bench) include(t *testing.T) string {
	gate, err := os.ReadFile("../../../kernels/harness/gate.h")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.root, "harness/gate.h"), string(gate))
	return filepath.Join(w.root, "harness")
}

// A tally counts what came of edits.
type tally struct {
	mu       sync.Mutex
	next     int
	outcomes map[string]int
	kinds    map[string]int
	refused  int
}

// take is the number of the next edit.
func (c *tally) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.next - 1
}

func (c *tally) add(d drawn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes[d.outcome]++
	c.kinds[d.kind]++
	c.refused += d.refused
}

func (c *tally) String() string {
	var never []string
	for _, e := range grammar {
		if c.kinds[e.kind] == 0 {
			never = append(never, e.kind)
		}
	}
	edits := 0
	for _, n := range c.outcomes {
		edits += n
	}
	return fmt.Sprintf("%d edits, seed %d, %d of %d classes (never drawn: %q), %v, %d more refused by gate or the compiler; unearned \"unchanged\": %d, harmless called \"changed\": %d, broken: %d",
		edits, *editSeed, len(grammar)-len(never), len(grammar), never, c.outcomes, c.refused, c.outcomes["unearned"], c.outcomes["cautious"], c.outcomes["broken"])
}

// TestEdits draws edits and holds gate's answer against what the compiler made:
// nothing that runs otherwise is called unchanged, and nothing harmless changed.
func TestEdits(t *testing.T) {
	compilesMuch(t)
	t.Parallel()
	tools(t)
	trees, workers := toys(), 2
	if *editCount > 60 {
		trees, workers = append(trees, shipped(t)...), atOnce(t)
	}
	count := &tally{outcomes: map[string]int{}, kinds: map[string]int{}}
	var wg sync.WaitGroup
	for range workers {
		w := &bench{root: t.TempDir(), bases: map[string]built{}}
		wg.Go(func() {
			for n := count.take(); n < *editCount && !(t.Failed() && *editCount <= 60); n = count.take() {
				d, err := w.draw(t, rand.New(rand.NewPCG(*editSeed, uint64(n))), trees, n)
				if err != nil {
					t.Errorf("edit %d: %v", n, err)
				}
				count.add(d)
			}
		})
	}
	wg.Wait()
	t.Log(count)
	if *editCount >= 30 && (count.outcomes["changed"] == 0 || count.outcomes["harmless"] == 0) {
		t.Error("the edits were all of one kind")
	}
}

// atOnce is what -test.parallel says.
func atOnce(t *testing.T) int {
	n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err != nil || n < 1 {
		t.Fatalf("-test.parallel is %d, %v", n, err)
	}
	return n
}

// A drawn edit is what came of one, and of how many before it no build came.
type drawn struct {
	kind, outcome string
	refused       int
}

// draw makes one edit, and builds before and after it.
func (w *bench) draw(t *testing.T, r *rand.Rand, trees []tree, n int) (drawn, error) {
	if w.draws%drawsOfCache == 0 {
		w.cache = filepath.Join(w.root, "cache")
		if err := os.RemoveAll(w.cache); err != nil {
			return drawn{outcome: "broken"}, err
		}
	}
	w.draws++
	for refused := 0; ; {
		e := grammar[(n+r.IntN(3)*7)%len(grammar)]
		tr, after, ok := e.in(r, trees)
		if !ok {
			continue
		}
		outcome, err := w.compare(t, tr, after, e)
		if outcome != "refused" {
			return drawn{e.kind, outcome, refused}, err
		}
		refused++
	}
}

// in makes the edit in one of the trees in which it finds something to change.
func (e edit) in(r *rand.Rand, trees []tree) (before, after tree, ok bool) {
	for _, i := range r.Perm(len(trees)) {
		if after = trees[i].clone(); e.apply(r, &after) {
			return trees[i], after, true
		}
	}
	return before, after, false
}

// compare builds before and after an edit.
func (w *bench) compare(t *testing.T, tr, after tree, e edit) (string, error) {
	key := fmt.Sprint(tr.name, tr.kernel.Sources)
	base, ok := w.bases[key]
	if !ok {
		var err error
		if base, err = w.build(t, tr); err != nil {
			return "broken", fmt.Errorf("%s: %w", key, err)
		}
		w.bases[key] = base
	}
	got, err := w.build(t, after)
	switch {
	case errors.Is(err, errRefused) && !e.harmless:
		return "refused", nil
	case err != nil:
		return "broken", fmt.Errorf("%s in %s: %w", e.kind, key, err)
	}
	changed, runs := got.id != base.id, got.truth != base.truth
	switch {
	case runs && !changed:
		return "unearned", fmt.Errorf("%s in %s: called unchanged, but it runs otherwise\n%s", e.kind, key, difference(base.truth, got.truth))
	case e.harmless && changed:
		return "cautious", fmt.Errorf("%s in %s: harmless, but called changed (it runs otherwise: %v)\n%s", e.kind, key, runs, diffTrees(tr, after))
	case e.harmless:
		return "harmless", nil
	case changed && !runs:
		t.Logf("%s in %s: changed in doubt", e.kind, key)
		return "changed in doubt", nil
	case !changed:
		t.Logf("%s in %s: without effect", e.kind, key)
		return "without effect", nil
	}
	return "changed", nil
}

func difference(a, b string) string {
	var out bytes.Buffer
	before := strings.Split(a, "\n")
	for _, line := range strings.Split(b, "\n") {
		if !slices.Contains(before, line) {
			fmt.Fprintln(&out, line)
		}
	}
	return out.String()
}

func diffTrees(a, b tree) string {
	var out bytes.Buffer
	fmt.Fprintln(&out, a.kernel.Flags, b.kernel.Flags)
	for name, text := range b.files {
		fmt.Fprintln(&out, name, difference(a.files[name], text))
	}
	return out.String()
}
