package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

const root = "../../.."

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := Of(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name+".json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name + ".json")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

// fromYAML is a text as an editor's schema checker sees it: dates are texts.
func fromYAML(t *testing.T, text string) any {
	t.Helper()
	var v any
	if _, err := yamlfile.Decode([]byte(text), "f.yaml", &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return fromJSON(t, bytes.ReplaceAll(data, []byte("T00:00:00Z"), nil))
}

func fromJSON(t *testing.T, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// tree writes files below a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	goodPolicy = "version: 1\nkernels: kernels/**/kernel.yaml\nstore: kernels/evidence\nrules:\n  - {id: spills, metric: ptxas.spill_bytes, limit: 0}\n"
	goodOp     = "op: sum\nsources: [sum.cc]\ndims: [N]\ncases:\n  small: {N: 4}\ntolerance: {relative_error: 1.0e-3}\n"
	goodKernel = "op: sum\nsources: [k.cu]\narch: [sm_90]\ncases: [small]\n"
)

// parse reads a text with the parser that the schema of a name goes with.
func parse(t *testing.T, name, text string) error {
	t.Helper()
	if name == "policy" {
		_, err := policy.Parse([]byte(text), "policies.yaml")
		return err
	}
	files := map[string]string{"kernels/sum/op.yaml": goodOp, "kernels/sum/sum.cc": "", "kernels/sum/k/kernel.yaml": goodKernel, "kernels/sum/k/k.cu": ""}
	if name == "op" {
		files["kernels/sum/op.yaml"] = text
	} else {
		files["kernels/sum/k/kernel.yaml"] = text
	}
	_, err := manifest.Load(tree(t, files), []string{"kernels/**/kernel.yaml"})
	return err
}

// files are texts that both have to accept, or that the parser refuses. Where
// the schema refuses them as well, an editor shows it.
var files = []struct {
	schema, name, text string
	parser, editor     bool // accepts it
}{
	{"policy", "good", goodPolicy, true, true},
	{"policy", "everything", `version: 1
extends: standard
kernels: [kernels/**/kernel.yaml, "!kernels/x/**"]
machines: [h200, {name: ours, match: "NVIDIA B*"}]
store: s3://bucket/prefix?region=eu-west-1
new_ops: warn
build_head: touched
max_age: 90d
latency: {profile: strict, budget: 90s, gpu_budget: 20s, base: run}
after_failure: continue
rules:
  - {id: limit, metric: ptxas.spill_bytes, limit: 1KiB, severity: warn, arch: ["sm_90*"], kernels: ["a/*"], on_missing: fail, on_inconclusive: warn}
  - {id: cases, metric: latency.typical, max_regression: 2%, floor: 50ns, cases: [long], unexplained_gain: 50%}
  - {id: entries, metric: ptxas.registers, limit: 64, entries: ["k*"]}
  - {id: trade, replaces: limit, metric: ptxas.spill_bytes, limit: 64, when: {metric: latency.typical, min_improvement: 3%}}
waivers:
  - {rule: entries, kernel: a/b, ceiling: 168, until: 2027-03-01, owner: "@kernels", reason: because}
`, true, true},
	{"policy", "unknown key", goodPolicy + "planted: 1\n", false, false},
	{"policy", "version 2", strings.Replace(goodPolicy, "version: 1", "version: 2", 1), false, false},
	{"policy", "no store", strings.Replace(goodPolicy, "store: kernels/evidence\n", "", 1), false, false},
	{"policy", "unknown key of a rule", strings.Replace(goodPolicy, "limit: 0", "limt: 0", 1), false, false},
	{"policy", "limit as a list", strings.Replace(goodPolicy, "limit: 0", "limit: [0]", 1), false, false},
	{"policy", "limit below 0", strings.Replace(goodPolicy, "limit: 0", "limit: -1", 1), false, false},
	{"policy", "unknown unit", strings.Replace(goodPolicy, "limit: 0", "limit: 1xs", 1), false, false},
	{"policy", "id in capitals", strings.Replace(goodPolicy, "id: spills", "id: Spills", 1), false, false},
	{"policy", "unknown severity", strings.Replace(goodPolicy, "limit: 0", "limit: 0, severity: error", 1), false, false},
	{"policy", "unknown profile", goodPolicy + "latency: {profile: fast}\n", false, false},
	{"policy", "waiver without reason", goodPolicy + "waivers:\n  - {rule: spills, kernel: a/b, ceiling: 1, until: 2027-03-01, owner: x}\n", false, false},
	{"policy", "waiver without end", goodPolicy + "waivers:\n  - {rule: spills, kernel: a/b, ceiling: 1, until: soon, owner: x, reason: y}\n", false, false},
	{"policy", "unknown metric", strings.Replace(goodPolicy, "ptxas.spill_bytes", "ptxas.spils", 1), false, true},
	{"policy", "two rules of one id", goodPolicy + "  - {id: spills, metric: ptxas.registers, limit: 1}\n", false, true},
	{"kernel", "good", goodKernel, true, true},
	{"kernel", "everything", goodKernel + "flags: [-O3]\nentries: [\"k*\"]\nwas: sum/old\n", true, true},
	{"kernel", "unknown key", goodKernel + "limit: 1\n", false, false},
	{"kernel", "arch without its line", strings.Replace(goodKernel, "sm_90", "sm90", 1), false, false},
	{"kernel", "arch as a number", strings.Replace(goodKernel, "sm_90", "90", 1), false, false},
	{"kernel", "arch as a text", strings.Replace(goodKernel, "[sm_90]", "sm_90", 1), false, false},
	{"kernel", "unknown case", strings.Replace(goodKernel, "[small]", "[large]", 1), false, true},
	{"kernel", "arch twice", strings.Replace(goodKernel, "[sm_90]", "[sm_90, sm_90]", 1), false, true},
	{"op", "good", goodOp, true, true},
	{"op", "work", goodOp + "work: {bytes: 8*N + 4, flops: 2*N*N, unit: f16}\n", true, true},
	{"op", "work in bytes alone", goodOp + "work: {bytes: N}\n", true, true},
	{"op", "work of nothing", goodOp + "work: {}\n", false, false},
	{"op", "flops without a unit", goodOp + "work: {flops: N}\n", false, false},
	{"op", "a unit of no flops", goodOp + "work: {bytes: N, unit: f16}\n", false, false},
	{"op", "flops of an unknown unit", goodOp + "work: {flops: N, unit: fp16}\n", false, false},
	{"op", "work that is not an expression", goodOp + "work: {bytes: N/2}\n", false, true},
	{"op", "rows of the reference", goodOp + "reference: {rows: 2048, cases: [small]}\n", true, true},
	{"op", "rows of every case", goodOp + "reference: {rows: 64}\n", true, true},
	{"op", "reference without rows", goodOp + "reference: {cases: [small]}\n", false, false},
	{"op", "few rows", goodOp + "reference: {rows: 63}\n", false, false},
	{"op", "too many rows", goodOp + "reference: {rows: 16777217}\n", false, false},
	{"op", "rows of no case", goodOp + "reference: {rows: 64, cases: []}\n", false, false},
	{"op", "rows of a case that there is not", goodOp + "reference: {rows: 64, cases: [large]}\n", false, true},
	{"op", "unknown key", goodOp + "tolerances: 1\n", false, false},
	{"op", "no dims", strings.Replace(goodOp, "dims: [N]\n", "", 1), false, false},
	{"op", "size of 0", strings.Replace(goodOp, "{N: 4}", "{N: 0}", 1), false, false},
	{"op", "tolerance of 10", strings.Replace(goodOp, "1.0e-3", "10", 1), false, false},
	{"op", "another tolerance", strings.Replace(goodOp, "relative_error: 1.0e-3", "relative_error: 1.0e-3, most: 1", 1), false, false},
	{"op", "case without its dimension", strings.Replace(goodOp, "{N: 4}", "{M: 4}", 1), false, true},
}

func TestSchemaAndParserAgree(t *testing.T) {
	for _, c := range files {
		t.Run(c.schema+" "+c.name, func(t *testing.T) {
			if err := parse(t, c.schema, c.text); (err == nil) != c.parser {
				t.Errorf("the parser says %v", err)
			}
			if err := compile(t, c.schema).Validate(fromYAML(t, c.text)); (err == nil) != c.editor {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

// TestSchemasKnowTheParsersKeys asks the parsers, which list their keys when
// they meet one that they do not know.
func TestSchemasKnowTheParsersKeys(t *testing.T) {
	const strange = "qqqqqqqqqqqqqqqqqqqqqqqq: 1"
	for _, c := range []struct{ schema, at, text string }{
		{"policy", "", strange + "\n"},
		{"policy", "properties.latency", "latency: {" + strange + "}\n"},
		{"policy", "definitions.rule", "rules: [{" + strange + "}]\n"},
		{"policy", "definitions.rule.properties.when", "rules: [{when: {" + strange + "}}]\n"},
		{"policy", "definitions.waiver", "waivers: [{" + strange + "}]\n"},
		{"kernel", "", strange + "\n"},
		{"op", "", strange + "\n"},
		{"op", "properties.work", "work: {" + strange + "}\n"},
		{"op", "properties.reference", "reference: {" + strange + "}\n"},
	} {
		var e *yamlfile.Error
		if err := parse(t, c.schema, c.text); !errors.As(err, &e) {
			t.Errorf("%s %s: %v", c.schema, c.at, err)
			continue
		}
		known := strings.Split(strings.TrimPrefix(e.Advice, "known keys here: "), ", ")
		text, _ := Of(c.schema)
		var at map[string]any
		if err := json.Unmarshal(text, &at); err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.FieldsFunc(c.at, func(r rune) bool { return r == '.' }) {
			at, _ = at[part].(map[string]any)
		}
		var keys []string
		properties, _ := at["properties"].(map[string]any)
		for k, v := range properties {
			keys = append(keys, k)
			if d, _ := v.(map[string]any)["description"].(string); d == "" {
				t.Errorf("%s %s: %s has no description", c.schema, c.at, k)
			}
		}
		slices.Sort(keys)
		slices.Sort(known)
		if !slices.Equal(keys, known) {
			t.Errorf("%s %s: the schema knows %q, the parser %q", c.schema, c.at, keys, known)
		}
	}
}

// TestRepositoryFitsItsSchemas holds every file of the repository against them,
// and the line by which an editor finds the schema against its place.
func TestRepositoryFitsItsSchemas(t *testing.T) {
	found := map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := map[string]string{"policies.yaml": "policy", "kernel.yaml": "kernel", "op.yaml": "op"}[d.Name()]
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case strings.Contains(path, "kernels/evidence/") && strings.HasSuffix(path, ".json"):
			name = "evidence"
		case name == "":
			return nil
		}
		found[name]++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name == "evidence" {
			return compile(t, name).Validate(fromJSON(t, data))
		}
		first, _, _ := strings.Cut(string(data), "\n")
		link, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), link)); !ok || err != nil || filepath.Base(link) != name+".json" {
			t.Errorf("%s begins with %q, which is not a line that leads an editor to %s.json", path, first, name)
		}
		if err := compile(t, name).Validate(fromYAML(t, string(data))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found["policy"] == 0 || found["kernel"] == 0 || found["op"] == 0 || found["evidence"] == 0 {
		t.Errorf("found %v", found)
	}
}

func TestWhatGateWritesFitsItsSchemas(t *testing.T) {
	r := &evidence.Record{Schema: evidence.Schema, Tier: evidence.Profile, Metrics: evidence.Metrics{"a": evidence.Of(1, "%"), "b": evidence.Absent("no", "")}}
	data, err := evidence.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	s := compile(t, "evidence")
	if err := s.Validate(fromJSON(t, data)); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ old, new string }{{`"value": 1,`, ""}, {`"tier"`, `"teir"`}, {evidence.Schema, "gate/evidence/v0"}, {`"missing": "no"`, `"missing": ""`}} {
		bad := strings.Replace(string(data), c.old, c.new, 1)
		if bad == string(data) || s.Validate(fromJSON(t, []byte(bad))) == nil {
			t.Errorf("%s → %s is accepted", c.old, c.new)
		}
	}
	goldens, _ := filepath.Glob("../../testdata/*/*verdict*.json")
	more, _ := filepath.Glob("../*/testdata/*verdict*.json")
	checked := 0
	for _, path := range append(goldens, more...) {
		v, err := verdict.Read(path)
		if err != nil {
			continue
		}
		checked++
		text, err := v.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := compile(t, "verdict").Validate(fromJSON(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	v := &verdict.Verdict{Schema: verdict.Schema, Kernels: []verdict.KernelVerdict{{Name: "a", Findings: []verdict.Finding{{Rule: "builds", Status: verdict.Fail}}}}}
	v.Conclude()
	text, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := compile(t, "verdict").Validate(fromJSON(t, text)); err != nil {
		t.Error(err)
	}
	t.Logf("%d recorded verdicts", checked)
}

var update = flag.Bool("update", false, "rewrite the tables of keys in the documentation")

// TestDocumentedKeys keeps the tables of keys in the documentation equal to the
// schemas: between two marks stands what the schema says.
func TestDocumentedKeys(t *testing.T) {
	for _, doc := range []struct {
		file   string
		tables []table
	}{
		{"policies.md", []table{{"policy", "", ""}, {"policy", "properties.latency", "latency."}, {"policy", "definitions.rule", "rules[]."},
			{"policy", "definitions.rule.properties.when", "rules[].when."}, {"policy", "definitions.waiver", "waivers[]."}}},
		{"manifests.md", []table{{"kernel", "", ""}, {"op", "", ""}, {"op", "properties.work", "work."}, {"op", "properties.reference", "reference."}}},
	} {
		path := filepath.Join(root, "gate/docs", doc.file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for _, w := range doc.tables {
			from, to := fmt.Sprintf("<!-- keys: %s %s -->\n", w.schema, w.at), "<!-- end of keys -->"
			before, rest, ok := strings.Cut(text, from)
			if !ok {
				t.Fatalf("%s has no mark %s", path, from)
			}
			old, after, _ := strings.Cut(rest, to)
			if want := w.markdown(t); old != want {
				if !*update {
					t.Errorf("%s: the table of %s %s is not the schema's; go test ./gate/internal/schema -update writes it", path, w.schema, w.at)
				}
				text = before + from + want + to + after
			}
		}
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A table is the keys of one object of a schema.
type table struct{ schema, at, prefix string }

func (w table) markdown(t *testing.T) string {
	t.Helper()
	text, err := Of(w.schema)
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Properties keys     `json:"properties"`
		Required   []string `json:"required"`
	}
	var at json.RawMessage = text
	for _, part := range strings.FieldsFunc(w.at, func(r rune) bool { return r == '.' }) {
		var inner map[string]json.RawMessage
		if err := json.Unmarshal(at, &inner); err != nil {
			t.Fatal(err)
		}
		at = inner[part]
	}
	if err := json.Unmarshal(at, &o); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| key | type | default | example | meaning |\n|---|---|---|---|---|\n")
	for _, k := range o.Properties {
		standard := "—"
		if k.Default != nil {
			standard = code(k.Default)
		} else if slices.Contains(o.Required, k.name) {
			standard = "required"
		}
		example := "—"
		if len(k.Examples) > 0 {
			example = code(k.Examples[0])
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s | %s |\n", w.prefix, k.name, k.kind(), standard, example, k.Description)
	}
	return b.String()
}

func code(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	text := strings.ReplaceAll(string(data), "|", "\\|")
	return "`" + strings.Trim(text, `"`) + "`"
}

// keys are properties in the order in which they are written.
type keys []property

type property struct {
	name        string
	Description string            `json:"description"`
	Type        string            `json:"type"`
	Ref         string            `json:"$ref"`
	Enum        []any             `json:"enum"`
	Const       any               `json:"const"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	Default     any               `json:"default"`
	Examples    []any             `json:"examples"`
}

func (p property) kind() string {
	switch {
	case strings.HasSuffix(p.Ref, "amount"):
		return "amount"
	case len(p.Enum) > 0:
		var words []string
		for _, v := range p.Enum {
			words = append(words, code(v))
		}
		return strings.Join(words, ", ")
	case p.Const != nil:
		return "number"
	case len(p.AnyOf) > 0:
		return "text or more"
	case p.Type == "array":
		return "list"
	case p.Type == "object":
		return "mapping"
	case p.Type == "string":
		return "text"
	}
	return p.Type
}

func (k *keys) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		p := property{name: fmt.Sprint(name)}
		if err := dec.Decode(&p); err != nil {
			return err
		}
		*k = append(*k, p)
	}
	return nil
}
