package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wrongFiles are mistakes that users make, each one edit of a good repository,
// with all that gate says of it.
var wrongFiles = []struct{ name, file, old, new, says string }{
	{"architecture twice", kernelYAML, "[sm_90]", "[sm_90, sm_90]", kernelYAML + `:3: arch names "sm_90" twice`},
	{"architecture as a number", kernelYAML, "[sm_90]", "[90]", kernelYAML + `:3: "90" is not an architecture such as sm_90 or sm_90a
gate: hint: did you mean "sm_90"?`},
	{"architecture without its line", kernelYAML, "[sm_90]", "[sm90]", kernelYAML + `:3: "sm90" is not an architecture such as sm_90 or sm_90a
gate: hint: did you mean "sm_90"?`},
	{"architecture without a list", kernelYAML, "[sm_90]", "sm_90", kernelYAML + `:3: a list is needed here, not text ("sm_90")
gate: hint: [sm_90] is a list of one`},
	{"two flags in one", kernelYAML, "[-O3]", `["-O3 -lineinfo"]`, kernelYAML + `:4: flag "-O3 -lineinfo" holds more than one word
gate: hint: make each word an entry of its own, or join an option and its value with =`},
	{"flags without a list", kernelYAML, "[-O3]", "-O3", kernelYAML + `:4: a list is needed here, not text ("-O3")
gate: hint: [-O3] is a list of one`},
	{"source of another ending", kernelYAML, "scale.cu", "scale.cpp", kernelYAML + `:2: no file "scale.cpp" in this folder
gate: hint: did you mean "scale.cu"?`},
	{"misspelt case", kernelYAML, "[small]", "[smal]", kernelYAML + `:6: op toy has no case "smal"
gate: hint: did you mean "small"?`},
	{"tab", kernelYAML, "sources:", "\tsources:", kernelYAML + `:2: found a tab character that violates indentation
gate: hint: YAML is indented with spaces`},
	{"tolerance of 10", "kernels/toy/op.yaml", "1.0e-3", "10", `kernels/toy/op.yaml:6: tolerance relative_error must be above 0 and at most 1, not 10`},
	{"a time compared in nothing", policyYAML, "max_regression: 2%", "max_regression: 2", `policies.yaml:11: rule "latency": max_regression of 2 does not fit latency.typical, which is in ns
gate: hint: did you mean 2%?`},
	{"a time compared in shares", policyYAML, "max_regression: 2%", "max_regression: 0.02", `policies.yaml:11: rule "latency": max_regression of 0.02 does not fit latency.typical, which is in ns
gate: hint: did you mean 2%?`},
	{"a time without limit", policyYAML, "max_regression: 2%", "max_regression: 1e99%", `policies.yaml:11: rule "latency": a time that may grow by 1e99% is not limited: 9900% is the most
gate: hint: 2%`},
	{"comma for a point", policyYAML, "max_regression: 2%", `max_regression: "2,5%"`, `policies.yaml:11: "2,5%" is not an amount such as 8, 1e-3, 2%, 5pp or 50ns
gate: hint: did you mean "2.5%"?`},
	{"unit in words", policyYAML, "max_regression: 2%", "max_regression: 2 percent", `policies.yaml:11: "2 percent" has an unknown unit "percent": known are %, pp, ns, us, ms, s, B, KB, KiB, MB, MiB, GB, GiB
gate: hint: did you mean "2%"?`},
	{"limit as a list", policyYAML, "limit: 0}", "limit: [0]}", `policies.yaml:6: one amount such as 8, 1e-3, 2%, 5pp or 50ns is needed here, not a list or a mapping`},
	{"word of a metric", policyYAML, "ptxas.spill_bytes", "spills", `policies.yaml:6: rule "spills": unknown metric "spills"
gate: hint: did you mean ncu.spill_instructions, ptxas.spill_bytes, ptxas.spill_load_bytes, ptxas.spill_store_bytes?`},
	{"patterns that fit nothing", policyYAML, "kernels/**/kernel.yaml", "kernel/**/kernel.yaml", `policies.yaml:2: no kernel matches kernel/**/kernel.yaml
gate: hint: kernels: names files called kernel.yaml, from the root of the repository, such as kernels/**/kernel.yaml`},
	{"a file of another name", policyYAML, "kernels/**/kernel.yaml", "kernels/**/op.yaml", `policies.yaml:2: no kernel matches kernels/**/op.yaml
gate: hint: kernels: names files called kernel.yaml, from the root of the repository, such as kernels/**/kernel.yaml`},
	{"bracket that stays open", policyYAML, "limit: 0}", "limit: 0", `policies.yaml:6: did not find expected ',' or '}'
gate: hint: the bracket that opens here is not closed, or a comma is missing`},
	{"colon without a space", policyYAML, "id: spills", "id:spills", `policies.yaml:6: unknown key "id:spills"
gate: hint: a space is missing after the colon: id: spills`},
}

const (
	kernelYAML = "kernels/toy/scale/kernel.yaml"
	policyYAML = "policies.yaml"
)

func TestWrongFilesSayWhatWasMeant(t *testing.T) {
	skeleton := filepath.Join(mustGetwd(), "testdata", "script", "repo")
	for _, c := range wrongFiles {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(skeleton)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, c.file)
			text, err := os.ReadFile(path)
			if err != nil || strings.Count(string(text), c.old) != 1 {
				t.Fatalf("%q does not stand once in %s: %v", c.old, c.file, err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), c.old, c.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			t.Setenv("GATE_CACHE", t.TempDir())
			t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
			var out, errs bytes.Buffer
			code := run(context.Background(), []string{"gate", "check", "--base", "none"}, &out, &errs)
			if want := "gate: " + c.says + "\n"; code != 2 || errs.String() != want || out.Len() > 0 {
				t.Errorf("exit status %d, %s\ngot  %swant %s", code, &out, &errs, want)
			}
		})
	}
}
