package check

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

func TestReproduce(t *testing.T) {
	base := verdict.Side{Commit: strings.Repeat("0123456789", 4)}
	for _, c := range []struct {
		want    string
		base    string
		side    verdict.Side
		policy  string
		kernels []string
	}{
		{"gate check --base 012345678901", "", base, "policies.yaml", nil},
		{"gate check --base 012345678901", "main", base, "policies.yaml", nil},
		{"gate check --base none", "none", verdict.Side{}, "policies.yaml", nil},
		{"gate check", "", verdict.Side{}, "policies.yaml", nil},
		{"gate check --policy 'my policy.yaml' --base 012345678901 op/k 'attn_*' 'gemm<128,64>' 'it'\\''s' '$(rm -rf ~)'", "", base, "my policy.yaml",
			[]string{"op/k", "attn_*", "gemm<128,64>", "it's", "$(rm -rf ~)"}},
	} {
		r := &run{Options: Options{Options: project.Options{Base: c.base, Kernels: c.kernels}}, project: &project.Project{Policy: &policy.Policy{File: c.policy}, Base: c.side}}
		if got := r.reproduce(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestQuoteIsReadBackByAShell asks one.
func TestQuoteIsReadBackByAShell(t *testing.T) {
	for _, word := range []string{"", "plain", "a b", "it's", `"`, `\`, "$HOME", "`id`", "*", "~", "~root", "#x", "a\nb", "-x", "a;b", "a&b", "{a,b}", "!x", "ядро", "'''", "a=b", "\t", "[x]"} {
		out, err := exec.Command("/bin/sh", "-c", "cd /; printf '%s|' "+quote(word)).Output()
		if err != nil || string(out) != word+"|" {
			t.Errorf("%q is quoted as %s and read back as %q, %v", word, quote(word), out, err)
		}
	}
}
