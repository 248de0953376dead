package ncu

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

const (
	fixed15  = `"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"`
	longHead = fixed15 + `,"Section Name","Metric Name","Metric Unit","Metric Value"`
	ruleHead = longHead + `,"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"`
	launch0  = `"0","10","app","127.0.0.1","k(int)","1","7","(256, 1, 1)","(4, 2, 1)","0","9.0"`
	launch1  = `"1","10","app","127.0.0.1","k(int)","1","7","(256, 1, 1)","(4, 2, 1)","0","9.0"`
	metric   = `,"Command line profiler metrics","gpu__time_duration.sum","ns","1,500"`
	rawHead  = fixed15 + `,"gpu__time_duration.sum","launch__func_cache_config"`
	rawUnit  = `"","","","","","","","","","","","us",""`
	rawLine  = launch0 + `,"1.50","CachePreferNone"`
)

func text(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

func duration(t *testing.T, l *Launch) float64 {
	t.Helper()
	v, err := l.Metric("gpu__time_duration.sum")
	if err != nil || v.Kind != Number || v.Unit != "ns" {
		t.Fatalf("duration %+v, %v", v, err)
	}
	return v.Number
}

func TestShapes(t *testing.T) {
	long := text(longHead, launch0+metric, launch1+metric)
	raw := text(rawHead, rawUnit, rawLine)
	for name, c := range map[string]struct {
		in       string
		launches int
	}{
		"--metrics":            {long, 2},
		"raw page":             {raw, 1},
		"no last line end":     {strings.TrimSuffix(long, "\n"), 2},
		"CRLF":                 {strings.ReplaceAll(long, "\n", "\r\n"), 2},
		"BOM":                  {"\ufeff" + raw, 1},
		"concatenated":         {long + raw + long, 5},
		"concatenated, BOM":    {long + "\ufeff" + raw, 3},
		"noise before":         {text(`probe "app", with a comma`, `"a","b"`, "==PROF== Connected to process 1 (/tmp/k)") + long, 2},
		"noise between":        {text(longHead, launch0+metric, "step 1, 2", `"quoted" text`, "", launch1+metric), 2},
		"noise after":          {long + text("done", "==PROF== Disconnected from process 1"), 2},
		"no line end of noise": {"result: 1.0" + long, 2},
		"ragged with rules": {text(ruleHead, launch0+metric+`,`,
			launch0+`,"SpeedOfLight","","","","Bottleneck","OPT","Say ""more"", please","local","5.818"`, launch1+metric+`,`), 2},
		"12 columns": {text(`"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name","Metric Name","Metric Unit","Metric Value"`,
			`"0","10","app","127.0.0.1","k(int)","2021-Jan-01 10:00:00","1","7","GPU Speed Of Light","Duration","usecond","1.50"`), 1},
		"NVTX columns": {text(strings.Replace(rawHead, `,"Device"`, `,"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg","Device"`, 1),
			`"",`+rawUnit, strings.Replace(rawLine, `,"0","9.0"`, `,"main","0","9.0"`, 1)), 1},
		"line end in a field": {text(ruleHead, launch0+metric+`,`,
			launch0+`,"SpeedOfLight","","","","Bottleneck","ERR","first`, `second","",""`, launch1+metric+`,`), 2},
		"more line ends": {text(ruleHead, launch0+metric+`,`,
			launch0+`,"SpeedOfLight","","","","Bottleneck","ERR","first`, `second`, `third, ""quoted"" `, `","",""`, launch1+metric+`,`), 2},
		"label and name": {text(longHead, launch0+`,"GPU Speed Of Light Throughput","Duration","us","1.51"`, launch0+metric), 1},
		"name and label": {text(longHead, launch0+metric, launch0+`,"GPU Speed Of Light Throughput","Duration","us","1.51"`), 1},
		"instances":      {text(rawHead, rawUnit, launch0+`,"1.50 (1.00; 0.50)","CachePreferNone"`), 1},
	} {
		rep, err := Read(strings.NewReader(c.in), "t.csv")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(rep.Launches) != c.launches {
			t.Errorf("%s: %d launches, want %d", name, len(rep.Launches), c.launches)
		}
		for _, l := range rep.Launches {
			if d := duration(t, l); d != 1500 || l.Kernel != "k(int)" {
				t.Errorf("%s: duration %v of %q", name, d, l.Kernel)
			}
		}
	}
}

func TestLaunchFields(t *testing.T) {
	rep, err := Read(strings.NewReader(text("x", rawHead, rawUnit, rawLine)), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	l := rep.Launches[0]
	if l.ID != 0 || l.Process != 10 || l.Context != 1 || l.Stream != 7 || l.Device != 0 || l.CC != "9.0" || l.Line != 4 ||
		l.Block != [3]int{256, 1, 1} || l.Grid != [3]int{4, 2, 1} {
		t.Errorf("%+v", l)
	}
	v, err := l.Metric("launch__func_cache_config")
	if err != nil || v.Kind != Text || v.Text != "CachePreferNone" {
		t.Errorf("%+v %v", v, err)
	}
	v, err = l.Metric("sm__cycles_active.avg")
	if err != nil || v.Kind != Missing || v.Reason != ReasonNotCollected {
		t.Errorf("%+v %v", v, err)
	}
	if got := strings.Join(l.Names(), " "); got != "gpu__time_duration.sum launch__func_cache_config" {
		t.Errorf("names %s", got)
	}
}

func TestInstances(t *testing.T) {
	rep, err := Read(strings.NewReader(text(rawHead, rawUnit, launch0+`,"3.00 (FFMA: 1.00; x: y: 2.00)","all"`)), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	in, err := rep.Launches[0].Instances("gpu__time_duration.sum")
	want := []Instance{{Key: "FFMA", Number: 1000}, {Key: "x: y", Number: 2000}}
	if err != nil || len(in) != 2 || in[0] != want[0] || in[1] != want[1] {
		t.Errorf("%+v, %v; want %+v", in, err, want)
	}
	if in, err := rep.Launches[0].Instances("launch__func_cache_config"); len(in) != 0 || err != nil {
		t.Errorf("%+v, %v; want none", in, err)
	}
}

func TestRules(t *testing.T) {
	rep, err := Read(strings.NewReader(text(ruleHead, launch0+metric+",",
		launch0+`,"SpeedOfLight","","","","Bottleneck","OPT","Say ""more""","local","5.818"`,
		launch0+`,"SpeedOfLight","","","","Roofline","INF","x","",""`)), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := []Rule{
		{"SpeedOfLight", "Bottleneck", "OPT", `Say "more"`, "local", Value{Kind: Number, Number: 5.818, Unit: "%"}},
		{"SpeedOfLight", "Roofline", "INF", "x", "", missing(ReasonEmpty)},
	}
	if got := rep.Launches[0].Rules; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func utf16Bytes(s string, order binary.AppendByteOrder, bom bool) []byte {
	var b []byte
	if bom {
		b = order.AppendUint16(b, 0xfeff)
	}
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// Every encoding of one text gives one report.
func TestEncodings(t *testing.T) {
	plain := text("Grüße 😀", longHead, strings.Replace(launch0, "k(int)", "kernel_ä<😀>(int)", 1)+metric)
	for name, in := range map[string][]byte{
		"UTF-8": []byte(plain), "UTF-8 BOM": []byte("\ufeff" + plain), "gzip": zipped([]byte(plain)),
		"UTF-16LE": utf16Bytes(plain, binary.LittleEndian, true), "UTF-16BE": utf16Bytes(plain, binary.BigEndian, true),
		"UTF-16LE without BOM": utf16Bytes(plain, binary.LittleEndian, false), "UTF-16BE without BOM": utf16Bytes(plain, binary.BigEndian, false),
		"gzip of UTF-16": zipped(utf16Bytes(plain, binary.LittleEndian, true)),
	} {
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in))} {
			rep, err := Read(r, "t.csv")
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if l := rep.Launches[0]; l.Kernel != "kernel_ä<😀>(int)" || duration(t, l) != 1500 {
				t.Errorf("%s: %q", name, l.Kernel)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	long := text(longHead, launch0+metric, launch1+metric)
	for name, c := range map[string]struct {
		in, msg, hint string
		line          int
		noTable       bool
	}{
		"empty":             {"", "the file holds no table of ncu", "--csv", 0, true},
		"program output":    {"hello\n", "the file holds no table of ncu", "--csv", 0, true},
		"header only":       {text(longHead), "the table has no rows", "", 0, true},
		"units only":        {text(rawHead, rawUnit), "the table has no rows", "", 0, true},
		"no units":          {text(rawHead, rawLine), "the row of units is missing", "", 2, false},
		"raw longHead only": {text(rawHead), "no row of units", "", 1, false},
		"no kernels":        {text("==WARNING== No kernels were profiled."), "ncu profiled no kernel", "kernel filter", 0, true},
		"text page":         {text("  k (1, 1, 1)x(1, 1, 1)", "    Section: Occupancy"), "text output", "--csv", 0, true},
		"source page":       {text(`"Kernel Name","k"`, `"Address","Source","# Samples"`), "source page", "--page raw", 2, false},
		"new source page":   {text(`"#","Address","Source","# Samples"`), "source page", "--page raw", 1, false},
		"summary":           {text(`"Process ID","Kernel Name","Invocations","Metric Name","Minimum","Maximum","Average"`), "summary", "--print-summary", 1, false},
		"LFS pointer":       {text("version https://git-lfs.github.com/spec/v1", "oid sha256:00"), "git-lfs pointer", "git lfs pull", 1, false},
		"report":            {"NVR\x00\x02\x00\x00\x00\x08\x07", ".ncu-rep", "--csv --page raw", 0, false},
		"repz":              {"\x28\xb5\x2f\xfd....", ".ncu-repz", "--csv --page raw", 0, false},
		"zip":               {"PK\x03\x04....", "zip archive", "unpack", 0, false},
		"resaved":           {text(strings.ReplaceAll(longHead, `"`, "")), "saved by another program", "ncu wrote", 1, false},
		"cut in a row":      {long[:len(long)-20], "a quoted field does not end", "cut off", 3, false},
		"cut between":       {text(longHead, launch0), "the row has 11 fields", "", 2, false},
		"cut after label":   {text(longHead, launch0+`,"a","b"`), "the row has 13 fields", "", 2, false},
		"cut after a comma": {text(longHead, launch0+`,"S","a","ns",`), "the row is cut off after a comma", "", 2, false},
		"rule after comma":  {text(ruleHead, launch0+metric+",", launch0+`,"SpeedOfLight","","","",`), "the row is cut off after a comma", "", 3, false},
		"rule in commas":    {text(ruleHead, launch0+metric+",", launch0+`,"SpeedOfLight","","","","Bottleneck","OPT","x","local",`), "the row is cut off after a comma", "", 3, false},
		"rule after fields": {text(ruleHead, launch0+metric+",", launch0+`,"SpeedOfLight","","",""`), "neither a metric nor a rule", "", 3, false},
		"raw after a comma": {text(rawHead, rawUnit, launch0+`,"1.50",`), "the row is cut off after a comma", "", 3, false},
		"units, comma":      {text(rawHead, strings.TrimSuffix(rawUnit, `""`)), "the row is cut off after a comma", "", 2, false},
		"no quotes":         {text(longHead, launch0+strings.Replace(metric, `"ns"`, "ns", 1)), "a field stands without quotes", "", 2, false},
		"unit and value":    {text(longHead, launch0+`,"S","a","1,500","ns"`), `the unit is a number, "1,500"`, "", 2, false},
		"units are values":  {text(rawHead, strings.Replace(rawUnit, "us", "1.50", 1)), `the unit is a number, "1.50"`, "", 2, false},
		"some columns":      {text(strings.Replace(longHead, `"Grid Size"`, `"Gridded"`, 1)), "and not all", "", 1, false},
		"no process":        {text(longHead, strings.Replace(launch0, `"10"`, `""`, 1)+metric), `column "Process ID": is empty`, "", 2, false},
		"NUL in a row":      {text(longHead, launch0+strings.Replace(metric, "ns", "n\x00s", 1)), "holds a NUL byte", "", 2, false},
		"NUL in the header": {text(longHead + "\x00"), "holds a NUL byte", "", 1, false},
		"line end in name":  {text(longHead, launch0+strings.Replace(metric, "gpu__", "gpu\n__", 1)), "a line end stands inside a field", "", 3, false},
		"line end in raw":   {text(rawHead, rawUnit, strings.Replace(rawLine, "None", "\nNone", 1)), "a line end stands inside a field", "", 4, false},
		"cut after a byte":  {text(longHead, launch0+metric) + `"`, "a quoted field does not end", "", 3, false},
		"cut after two":     {text(longHead, launch0+metric) + `"1`, "a quoted field does not end", "", 3, false},
		"cut in an inset":   {text(bodyHead, launch0+bodyMetric) + `"GPU ID","GPU`, "the last line is cut off", "", 3, false},
		"too long":          {text(longHead, launch0+metric+`,"x"`), "the row has 16 fields", "", 2, false},
		"17 of 20":          {text(ruleHead, launch0+metric+`,"x","y"`), "the row has 17 fields", "", 2, false},
		"raw short":         {text(rawHead, rawUnit, launch0+`,"1.50"`), "the row has 12 fields, the header has 13", "", 3, false},
		"raw long":          {text(rawHead, rawUnit, rawLine+`,"1"`), "the row has 14 fields, the header has 13", "", 3, false},
		"raw long units":    {text(rawHead, rawUnit+`,""`), "the row has 14 fields, the header has 13", "", 2, false},
		"high surrogate":    {"\xff\xfea\x00\x00\xd8", "surrogate", "", 0, false},
		"torn row":          {text(longHead, "progress "+launch0+metric), "program output is mixed into a row", "--log-file", 2, false},
		"torn tail":         {text(longHead, launch0+metric+"progress"), "text follows a closing quote", "", 2, false},
		"reordered":         {text(longHead, launch1+metric, launch0+metric), "launch 0 follows launch 1", "", 3, false},
		"raw reordered":     {text(rawHead, rawUnit, rawLine, rawLine), "launch 0 follows launch 0", "", 4, false},
		"split launch":      {text(longHead, launch0+metric, launch1+metric, launch0+metric), "the rows were reordered", "", 4, false},
		"two values":        {text(longHead, launch0+metric, launch0+strings.Replace(metric, "1,500", "1,501", 1)), "has two values", "", 3, false},
		"two kernels":       {text(longHead, launch0+metric, strings.Replace(launch0, "k(int)", "f(int)", 1)+metric), "two kernels", "", 3, false},
		"ambiguous":         {text(longHead, launch0+strings.Replace(metric, "1,500", "117.344", 1)), "could be a decimal fraction", "LC_ALL=C", 2, false},
		"half known":        {text(longHead, launch0+strings.Replace(metric, "1,500", "1.2.3", 1)), "neither a number", "LC_ALL=C", 2, false},
		"raw ambiguous":     {text(rawHead, rawUnit, strings.Replace(rawLine, "1.50", "1.500", 1)), "could be a decimal fraction", "LC_ALL=C", 3, false},
		"grid":              {text(longHead, strings.Replace(launch0, "(4, 2, 1)", "(4, 2)", 1)+metric), "not a size of three numbers", "", 2, false},
		"negative grid":     {text(longHead, strings.Replace(launch0, "(4, 2, 1)", "(-4, 2, 1)", 1)+metric), "not a size of three numbers", "", 2, false},
		"id":                {text(longHead, strings.Replace(launch0, `"0"`, `"0x"`, 1)+metric), `"0x" is not a number`, "", 2, false},
		"cc":                {text(longHead, strings.Replace(launch0, "9.0", "9", 1)+metric), "not a compute capability", "", 2, false},
		"no kernel name":    {text(longHead, strings.Replace(launch0, "k(int)", "", 1)+metric), `"Kernel Name" is empty`, "", 2, false},
		"column twice":      {text(strings.Replace(longHead, `"Stream"`, `"Context"`, 1)), "occurs twice in the header", "", 1, false},
		"metric twice":      {text(rawHead + `,"gpu__time_duration.sum"`), "occurs twice in the header", "", 1, false},
		"no metrics":        {text(fixed15), "no metric columns", "", 1, false},
		"unknown column":    {text(longHead + `,"New"`), `unknown column "New"`, "", 1, false},
		"rule columns":      {text(longHead + `,"Rule Name","New","Rule Description","Estimated Speedup Type","Estimated Speedup"`), "rule columns are not in a known order", "", 1, false},
		"speedup":           {text(ruleHead, launch0+`,"S","","","","R","OPT","x","local","many"`), "estimated speedup", "", 2, false},
		"damaged gzip":      {string(zipped([]byte(long))[:60]), "gzip file is cut off or damaged", "", 0, false},
		"damaged gzip head": {"\x1f\x8b\x00\x00", "gzip file is cut off or damaged", "", 0, false},
		"odd UTF-16":        {string(utf16Bytes(long, binary.LittleEndian, true)) + "x", "middle of a character", "", 0, false},
		"half a surrogate":  {"\xff\xfe\x00\xd8a\x00b\x00", "surrogate", "", 0, false},
	} {
		rep, err := Read(strings.NewReader(c.in), "t.csv")
		var s *SyntaxError
		if rep == nil || !errors.As(err, &s) {
			t.Errorf("%s: %v, %T %v", name, rep, err, err)
			continue
		}
		if !strings.Contains(s.Msg, c.msg) || !strings.Contains(s.Hint, c.hint) || s.File != "t.csv" || errors.Is(err, ErrNoTable) != c.noTable {
			t.Errorf("%s: %+v", name, s)
		}
		if c.line > 0 && s.Line != c.line {
			t.Errorf("%s: line %d, want %d", name, s.Line, c.line)
		}
	}
}

func TestToolErrors(t *testing.T) {
	long := text(longHead, launch0+metric)
	for name, c := range map[string]struct {
		in     string
		denied bool
	}{
		"permission":    {text("==PROF== Connected to process 1", "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"), true},
		"launch failed": {text("==ERROR== LaunchFailed", "==ERROR== The application returned an error code (9)."), false},
		"before table":  {text("==ERROR== LaunchFailed") + long, false},
		"after table":   {long + text("==ERROR== The application returned an error code (1)."), false},
		"behind a BOM":  {"\ufeff" + text("==ERROR== LaunchFailed") + long, false},
		"with garbage":  {text("==ERROR== LaunchFailed", longHead, `"0","x`), false},
	} {
		rep, err := Read(strings.NewReader(c.in), "t.csv")
		var e *ToolError
		if rep == nil || !errors.As(err, &e) {
			t.Errorf("%s: %v, %v", name, rep, err)
			continue
		}
		if e.PermissionDenied() != c.denied || errors.Is(err, ErrPermission) != c.denied || len(e.Lines) == 0 || e.Line == 0 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

const refusedRecording = "dd2360-launchfailed-nan.details.txt"

// A file of the text page whose kernel failed is refused with ncu's own words.
func TestLaunchFailedText(t *testing.T) {
	rep, err := readPath(t, corpus(t, refusedRecording))
	var e *ToolError
	if rep == nil || !errors.As(err, &e) || e.Lines[0] != "LaunchFailed" || len(e.Lines) != 3 || e.Line != 7 {
		t.Errorf("%v %v", rep, err)
	}
}

func TestReadError(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, n := range []int{0, 10, 200, 475} {
		in := text(longHead, launch0+metric, launch1+metric)
		r := io.MultiReader(strings.NewReader(in[:n]), iotest.ErrReader(broken))
		rep, err := Read(r, "t.csv")
		var s *SyntaxError
		if rep == nil || !errors.Is(err, broken) || errors.As(err, &s) {
			t.Errorf("after %d bytes: %v, %v", n, rep, err)
		}
	}
}

func TestMessages(t *testing.T) {
	rep, err := Read(strings.NewReader(text("==WARNING== Note: unmodified clocks.", "==PROF== Connected to process 1 (/home/me/app)", longHead, launch0+metric)), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := []Message{{1, "WARNING", "Note: unmodified clocks."}, {2, "PROF", "Connected to process"}}
	if len(rep.Messages) != 2 || rep.Messages[0] != want[0] || rep.Messages[1] != want[1] {
		t.Errorf("%+v", rep.Messages)
	}
}
