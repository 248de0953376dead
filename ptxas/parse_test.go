package ptxas

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	gmemLine  = "ptxas info    : 0 bytes gmem\n"
	entryLine = "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
	propsLine = "ptxas info    : Function properties for k\n"
	frameLine = "    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
	usedLine  = "ptxas info    : Used 40 registers, used 1 barriers, 128 bytes smem\n"
	timeLine  = "ptxas info    : Compile time = 1.000 ms\n"
	block     = gmemLine + entryLine + propsLine + frameLine + usedLine + timeLine
)

func parseString(t *testing.T, s string) *Log {
	t.Helper()
	log, err := Parse(strings.NewReader(s), "log")
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, s)
	}
	return log
}

// TestNoise puts the same record into the surroundings in which it is found.
func TestNoise(t *testing.T) {
	want := entryFigures(&parseString(t, block).Entries[0])
	for name, change := range map[string]func(line string) string{
		"plain":           func(l string) string { return l },
		"crlf":            func(l string) string { return l + "\r" },
		"msbuild":         func(l string) string { return "1>  " + l },
		"project suffix":  func(l string) string { return l + ` [C:\a b\x.vcxproj]` },
		"time stamp":      func(l string) string { return "2026-05-13T21:11:55.0972042Z " + l },
		"source location": func(l string) string { return "2026-05-13 21:11:55.097204: I xla/compile.cc:346] " + l },
		"comment":         func(l string) string { return "// " + l },
		"no indentation":  func(l string) string { return strings.TrimLeft(l, " ") },
		"continuation":    func(l string) string { return strings.Replace(l, "    16", "ptxas         .     16", 1) },
		"escaped quotes":  func(l string) string { return strings.ReplaceAll(l, "'", "&#39;") },
		"narrow tag":      func(l string) string { return strings.Replace(l, "info    :", "info :", 1) },
		"tight tag":       func(l string) string { return strings.Replace(l, "info    :", "info:", 1) },
		"command echoed":  func(l string) string { return "ptxas -v x.ptx\n" + l },
		"other programs":  func(l string) string { return l + "\nmyinfo : 0 bytes gmem\ninfo : 0 bytes gmem or so\ninfo: ok" },
		"between lines":   func(l string) string { return l + "\nnvcc -o a b\n[2/3] c++ \n\x00\xff\n" },
	} {
		var b strings.Builder
		for line := range strings.Lines(block) {
			b.WriteString(change(strings.TrimSuffix(line, "\n")) + "\n")
		}
		log := parseString(t, b.String())
		if len(log.Entries) != 1 || log.Units != 1 {
			t.Errorf("%s: %d entries in %d units", name, len(log.Entries), log.Units)
		} else if got := entryFigures(&log.Entries[0]); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// entryFigures renders an entry without its place in the text.
func entryFigures(e *Entry) string {
	c := *e
	c.Line, c.Occurrence = 0, 0
	c.Callees, c.UnitFunctions = nil, nil
	return fmt.Sprintf("%+v", c)
}

func TestUsedFields(t *testing.T) {
	entry := func(used string) *Entry {
		log := parseString(t, entryLine+propsLine+frameLine+"ptxas info    : Used "+used+"\n")
		return &log.Entries[0]
	}
	e := entry("63 registers, 4+0 bytes lmem, 44+40 bytes smem, 64 bytes cmem[0], 276 bytes cmem[16], 1 textures, 2 surfaces, 3 samplers")
	if e.LocalBytes != known(4) || e.SharedBytes != known(84) || e.ConstantBytes(0) != known(64) || e.ConstantBytes(16) != known(276) ||
		e.Textures != known(1) || e.Surfaces != known(2) || e.Samplers != known(3) {
		t.Errorf("got %+v", e)
	}
	if e.ConstantBytes(2).Known || e.Barriers.Known || e.CumulativeStackBytes.Known {
		t.Errorf("absent fields are known: %+v", e)
	}
	e = entry("63 registers")
	if e.SharedBytes != known(0) || e.LocalBytes != known(0) || e.Textures != known(0) {
		t.Errorf("fields that are left out when zero: %+v", e)
	}
	e = entry("63 registers, 12 bytes tmem, used 3 tensors, 4 of 5, 360 bytes cmem[0]")
	if got := strings.Join(e.Unknown, "|"); got != "12 bytes tmem|used 3 tensors|4 of 5" {
		t.Errorf("unknown fields %q", got)
	}
	if e.SharedBytes.Known || !e.Registers.Known || e.ConstantBytes(0) != known(360) {
		t.Errorf("beside unknown fields: %+v", e)
	}
}

// TestNegativeSpills: ptxas prints them for kernels that spill to shared memory.
// They are neither a reason to refuse the log nor a figure.
func TestNegativeSpills(t *testing.T) {
	const frame = "    12624 bytes stack frame, -56 bytes spill stores, 60 bytes spill loads\n"
	const used = "ptxas info    : Used 64 registers, used 0 barriers, 12624 bytes cumulative stack size, 7168 bytes smem\n"
	callee := strings.Replace(propsLine, "for k", "for f", 1) + frame
	log := parseString(t, entryLine+propsLine+frame+used+timeLine+callee+block)
	e := log.Entries[0]
	if e.StackBytes != known(12624) || e.SpillStoreBytes.Known || e.SpillLoadBytes != known(60) || e.SharedBytes != known(7168) {
		t.Errorf("got %+v", e)
	}
	if e.SpillBytes().Known || e.CalleeSpillBytes().Known || len(log.Entries) != 2 {
		t.Errorf("sums with a part that is not known: %v %v", e.SpillBytes(), e.CalleeSpillBytes())
	}
	for _, frame := range []string{"-1 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", "0 bytes stack frame, -0 bytes spill stores, 0 bytes spill loads",
		"0 bytes stack frame, --4 bytes spill stores, 0 bytes spill loads", "0 bytes stack frame, 4 bytes spill stores, - 4 bytes spill loads"} {
		if _, err := Parse(strings.NewReader(entryLine+propsLine+"    "+frame+"\n"+usedLine), "log"); err == nil {
			t.Errorf("%s: no error", frame)
		}
	}
}

// TestTornEnd: a last line without its end may have lost fields.
func TestTornEnd(t *testing.T) {
	log := parseString(t, entryLine+propsLine+frameLine+"ptxas info    : Used 40 registers, used 1 barriers")
	if e := log.Entries[0]; e.SharedBytes.Known || e.Registers != known(40) {
		t.Errorf("got %+v", e)
	}
}

func TestRefused(t *testing.T) {
	otherEntry := strings.ReplaceAll(entryLine, "'k'", "'other'")
	for _, c := range []struct{ name, text, want string }{
		{"usage without entry", gmemLine + usedLine, "log:2: output of several compilers is mixed, or lines are missing: register use without an entry function"},
		{"usage twice", block + usedLine, "register use without an entry"},
		{"entry in entry", entryLine + otherEntry, "an entry function begins, but entry k (line 1) has no register count"},
		{"unit in entry", entryLine + gmemLine, "a unit begins, but entry k (line 1)"},
		{"end in entry", entryLine + propsLine + frameLine, "the text ends, but entry k (line 1)"},
		{"end in properties", entryLine + propsLine, "the text ends, but the properties of k (line 2) have no figures"},
		{"frame alone", entryLine + frameLine, "stack and spill figures without a function"},
		{"frame twice", entryLine + propsLine + frameLine + frameLine, "stack and spill figures without a function"},
		{"own properties twice", entryLine + propsLine + frameLine + propsLine + frameLine, "properties of k are there twice"},
		{"properties in properties", entryLine + propsLine + propsLine, "properties begin, but those of k (line 2) have no figures"},
		{"usage in properties", entryLine + propsLine + usedLine, "register use, but the properties of k (line 2)"},
		{"two records on a line", "ptxas info    : Used 3ptxas info    : Used 40 registers\n", "two records share a line"},
		{"torn frame", entryLine + propsLine + "    16 bytes stack frame, 8 byt\n", "log:3: unreadable stack and spill figures"},
		{"torn usage", entryLine + propsLine + frameLine + "ptxas info    : Used 40 regi\n", "unreadable number of registers"},
		{"torn entry", "ptxas info    : Compiling entry function 'k' for 'sm\n", "unreadable entry function"},
		{"entry cut between quotes", "ptxas info    : Compiling entry function 'k' for '\n", "unreadable entry function"},
		{"arch that is none", "ptxas info    : Compiling entry function 'k' for 'gfx90a'\n", "unreadable entry function"},
		{"torn unit", "ptxas info    : 3 bytes gmem, 4 by\n", "unreadable global memory figures"},
		{"field twice", entryLine + "ptxas info    : Used 4 registers, 4 bytes smem, 4 bytes smem\n", "a field is there twice"},
		{"bank twice", entryLine + "ptxas info    : Used 4 registers, 4 bytes cmem[0], 4 bytes cmem[0]\n", "a constant bank is there twice"},
		{"overflow", entryLine + "ptxas info    : Used 99999999999999999999 registers\n", "unreadable number of registers"},
		{"cut in a keyword", block + "ptxas info    : Compiling ent", "log:7: the text ends inside a line"},
		{"cut in a figure", block + "ptxas info    : 12 byt", "log:7: the text ends inside a line"},
		{"unknown fields without end", entryLine + "ptxas info    : Used 4 registers" + strings.Repeat(", 1 x", 40) + "\n", "too many unknown fields"},
		{"linker usage alone", "nvlink info    : used 8 registers, 0 stack\n", "register use of the linker without a function"},
		{"linker in entry", entryLine + "nvlink info    : Function properties for 'k':\n", "the linker begins a function, but entry k"},
		{"linker without usage", "nvlink info    : Function properties for 'k':\n" + gmemLine, "a unit begins, but the properties of k"},
		{"blank in a name", "ptxas info    : Function properties for _Z1kPf ptxas\n", "a mangled name holds a blank"},
		{"figure in two parts", entryLine + propsLine + "    1 024 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n", "unreadable stack and spill figures"},
		{"quote of the arch lost", "ptxas info    : Compiling entry function 'k' for sm_90'\n", "unreadable entry function"},
		{"no field", entryLine + "ptxas info    : Used 4 registers, 0 bytes smem of 'k'\n", "text that is not a field"},
		{"long field", entryLine + "ptxas info    : Used 4 registers, 0 in this version and discontinued in a later one\n", "text that is not a field"},
		{"torn entry", "ptxas inftry function 'k' for 'sm_90'\n", "an entry function has lost its beginning"},
		{"utf-16", "\xff\xfep\x00t\x00\n", "text is UTF-16"},
		{"long line", strings.Repeat("x", maxLine+1), "line is longer than"},
		{"long name", "ptxas info    : Function properties for " + strings.Repeat("x", maxName+1) + "\n", "name of a function has"},
	} {
		log, err := Parse(strings.NewReader(c.text), "log")
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		if log == nil {
			t.Errorf("%s: nothing beside the error", c.name)
		}
	}
}

func TestNoEntries(t *testing.T) {
	for _, c := range []struct {
		name, text string
		reason     Reason
	}{
		{"empty", "", NoCompilerOutput},
		{"no -v", "nvcc -c x.cu\nptxas x.ptx\n", NoCompilerOutput},
		{"units without kernels", gmemLine + gmemLine, NoKernels},
		{"library", gmemLine + propsLine + frameLine + timeLine, NoKernels},
		{"advisory without -v", "ptxas info    : (C7510) Potential Performance Loss: x in the function 'k'\n", OnlyMessages},
		{"warning without -v", "ptxas warning : Stack size for entry function 'k' cannot be statically determined\n", OnlyMessages},
		{"failure", "ptxas fatal   : Ptx assembly aborted due to errors\n", CompilationFailed},
	} {
		_, err := Parse(strings.NewReader(c.text), "log")
		var none *NoEntriesError
		if !errors.As(err, &none) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		if none.Reason != c.reason || none.Hint() == "" || !strings.HasPrefix(err.Error(), "log: ") {
			t.Errorf("%s: reason %s, want %s (%v)", c.name, none.Reason, c.reason, err)
		}
	}
}

// TestFailedEntry: an entry that the compiler gave up on is kept, with unknown
// figures, beside the error.
func TestFailedEntry(t *testing.T) {
	log := parseString(t, gmemLine+entryLine+"ptxas fatal   : (C7600) Register allocation failed with register count of '255'. Compile the program with a higher register target\n"+block)
	if len(log.Entries) != 2 || log.Entries[0].Registers.Known || len(log.Errors) != 1 {
		t.Fatalf("got %+v", log)
	}
	if d := log.Errors[0]; d.Code != "C7600" || d.Kind != KindRegisterAllocation || d.Severity != SeverityFatal {
		t.Errorf("got %+v", d)
	}
	if log.Entries[1].Occurrence != 2 {
		t.Errorf("occurrence %d", log.Entries[1].Occurrence)
	}
}

func TestReaderError(t *testing.T) {
	broken := errors.New("disk on fire")
	log, err := Parse(io.MultiReader(strings.NewReader(block), iotest.ErrReader(broken)), "log")
	if log == nil || !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "log:7: ") {
		t.Errorf("got %v, %v", log, err)
	}
	if _, err := Parse(iotest.OneByteReader(strings.NewReader(block)), "log"); err != nil {
		t.Error(err)
	}
}

// TestCallees: where a device function is printed says which entries reach it.
func TestCallees(t *testing.T) {
	callee := func(name string) string {
		return strings.Replace(propsLine, "for k", "for "+name, 1) + frameLine
	}
	for _, c := range []struct{ name, text, want string }{
		{"behind the entry", block + callee("f"), "k: f | "},
		{"inside the entry", gmemLine + entryLine + callee("f") + usedLine, "k: f | "},
		{"before every entry", gmemLine + callee("f") + entryLine + usedLine, "k:  | f"},
		{"compiled separately", block + callee("f") + timeLine, "k:  | f"},
		{"callee of a separate function", block + callee("f") + timeLine + callee("g"), "k:  | f g"},
		{"callee before a separate function", block + callee("g") + callee("f") + timeLine, "k: g | f"},
		{"of another unit", block + gmemLine + callee("f"), "k:  | "},
	} {
		log := parseString(t, c.text)
		e := log.Entries[0]
		got := e.Name + ": " + names(e.Callees) + " | " + names(e.UnitFunctions)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLibraryUnits: functions of a unit without an entry belong to no entry.
func TestLibraryUnits(t *testing.T) {
	library := gmemLine + strings.Replace(propsLine, "for k", "for f", 1) + frameLine + timeLine
	for _, text := range []string{library + block, block + library} {
		log := parseString(t, text)
		if e := log.Entries[0]; names(log.Functions) != "f" || len(e.Callees)+len(e.UnitFunctions) > 0 {
			t.Errorf("functions %q, entry %+v", names(log.Functions), e)
		}
	}
}

// TestManyEntries: more entries than are allocated together.
func TestManyEntries(t *testing.T) {
	var text strings.Builder
	text.WriteString(gmemLine + strings.Replace(propsLine, "for k", "for f", 1) + frameLine)
	const n = 3*chunkSize + 7
	for i := range n {
		fmt.Fprintf(&text, "ptxas info    : Compiling entry function 'k%d' for 'sm_90'\nptxas info    : Used %d registers\n", i, i)
	}
	log := parseString(t, text.String())
	for i, e := range log.Entries {
		if e.Name != fmt.Sprintf("k%d", i) || e.Registers != known(int64(i)) || names(e.UnitFunctions) != "f" {
			t.Fatalf("entry %d: %+v", i, e)
		}
	}
	if len(log.Entries) != n {
		t.Errorf("%d entries", len(log.Entries))
	}
}

// TestAdvisoriesMerge: an advisory counts once for each code and function, also
// when its text has another line number or the function another clone number.
func TestAdvisoriesMerge(t *testing.T) {
	advisory := func(code, line, function string) string {
		return "ptxas info    : (" + code + ") warpgroup.arrive is injected in around line " + line + " by compiler in function '" + function + "'\n"
	}
	log := parseString(t, advisory("C7519", "1", "f")+advisory("C7519", "2", "f$83")+advisory("C7517", "1", "f")+advisory("C7519", "1", "g")+block)
	if len(log.Advisories) != 3 || log.Advisories[0].Repeats != 2 {
		t.Errorf("got %+v", log.Advisories)
	}
}

func names(list []Function) string {
	var s []string
	for _, f := range list {
		s = append(s, f.Name)
	}
	return strings.Join(s, " ")
}

func TestDiagnostics(t *testing.T) {
	for _, c := range []struct {
		line     string
		kind     Kind
		function string
		list     func(*Log) []Diagnostic
		figure   func(Diagnostic) Count
		want     Count
	}{
		{"ptxas info    : (C7511) Potential Performance Loss: x in the function 'f$83'", KindPerformanceLoss, "f$83", advisories, nil, Count{}},
		{"ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.", KindPerformanceLoss, "", advisories, nil, Count{}},
		{"ptxas info    : (C7519) warpgroup.arrive is injected in around line 9 by compiler in function 'f'", KindOther, "f", advisories, nil, Count{}},
		{"ptxas info    : Overriding maximum register limit 256 for 'f' with  32 of maxrregcount option", KindRegisterLimitOverride, "f", warnings, limit, known(32)},
		{"ptxas info    : Overriding global maxrregcount 24 with entry-specific value 32 computed using thread count", KindRegisterLimitOverride, "", warnings, limit, known(32)},
		{"ptxas warning : Too big maxrregcount value specified 261, will be ignored", KindMaxRegistersIgnored, "", warnings, limit, known(261)},
		{"ptxas warning : Registers are spilled to local memory in function 'f', 892 bytes spill stores, 888 bytes spill loads", KindSpills, "f", warnings, loads, known(888)},
		{"ptxas warning : Local memory used for function 'f', size of stack frame: 64 bytes", KindLocalMemory, "f", warnings, stack, known(64)},
		{"nvlink warning : Stack size for entry function 'f' cannot be statically determined", KindStackSizeUnknown, "f", warnings, nil, Count{}},
		{"ptxas warning : Value of threads per SM for entry f is out of range. .minnctapersm will be ignored", KindMinBlocksIgnored, "f", warnings, nil, Count{}},
		{"ptxas error   : Value of threads per SM for entry f is out of range. .minnctapersm will be ignored", KindMinBlocksIgnored, "f", failures, nil, Count{}},
		{"ptxas error   : Entry function 'f' with max regcount of 64 calls function 'g' with regcount of 255", KindCalleeRegisters, "f", failures, limit, known(64)},
		{"ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at line 1582 in function f. Try to compile with register target of 154 or higher.", KindRegisterAllocation, "f", failures, nil, Count{}},
		{"ptxas fatal   : Ptx assembly aborted due to errors", KindAborted, "", failures, nil, Count{}},
		{"ptxas /tmp/a b.ptx, line 894; warning : Double is not supported. Demoting to float", KindOther, "", warnings, nil, Count{}},
		{"E0101 cc:49] ptxas exited with code 65280, output: ptxas application ptx input, line 9; fatal   : Unsupported .version 8.4", KindOther, "", failures, nil, Count{}},
		{"nvlink info    : Function 'f' has address taken but no possible call to it", KindOther, "", notes, nil, Count{}},
	} {
		log := parseString(t, c.line+"\n"+block+c.line+"\n")
		list := c.list(log)
		if len(list) != 1 {
			t.Errorf("%s: %d messages", c.line, len(list))
			continue
		}
		d := list[0]
		if d.Kind != c.kind || d.Function != c.function || d.Line != 1 || d.Repeats != 2 {
			t.Errorf("%s: got %+v", c.line, d)
		}
		if c.figure != nil && c.figure(d) != c.want {
			t.Errorf("%s: figure %v, want %v", c.line, c.figure(d), c.want)
		}
	}
}

func advisories(l *Log) []Diagnostic { return l.Advisories }
func warnings(l *Log) []Diagnostic   { return l.Warnings }
func failures(l *Log) []Diagnostic   { return l.Errors }
func notes(l *Log) []Diagnostic      { return l.Notes }
func limit(d Diagnostic) Count       { return d.RegisterLimit }
func loads(d Diagnostic) Count       { return d.SpillLoadBytes }
func stack(d Diagnostic) Count       { return d.StackBytes }

// TestLinkers: the same kernel from the compiler and from both linkers.
func TestLinkers(t *testing.T) {
	log := parseString(t, block+
		"nvlink info    : 144 bytes gmem, 65536 bytes cmem[3] (target: sm_90)\n"+
		"nvlink info    : Function properties for 'k': (target: sm_90)\n"+
		"nvlink info    : used 45 registers, used 0 barriers, 40 stack, 0 bytes smem, 540 bytes cmem[0], 0 bytes lmem (target: sm_90)\n"+
		"info    : 0 bytes gmem\n"+
		"info    : Function properties for 'k':\n"+
		"info    : used 8 registers, 0 stack, 0 bytes smem, 360 bytes cmem[0], 0 bytes lmem\n"+
		"info : used cars, 8 registers\n")
	if len(log.Entries) != 3 || log.Units != 3 {
		t.Fatalf("got %+v", log)
	}
	link, driver := log.Entries[1], log.Entries[2]
	if link.Source != SourceNvlink || link.Arch != "sm_90" || link.Occurrence != 1 || link.Registers != known(45) || link.CumulativeStackBytes != known(40) {
		t.Errorf("nvlink: %+v", link)
	}
	if link.StackBytes.Known || link.SpillStoreBytes.Known || link.CalleeSpillBytes().Known || link.Textures.Known {
		t.Errorf("nvlink: figures that it does not print: %+v", link)
	}
	if driver.Source != SourceInfo || driver.Arch != "" || driver.Registers != known(8) {
		t.Errorf("driver: %+v", driver)
	}
}
