package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

func TestDeclaredChanges(t *testing.T) {
	for _, c := range []struct{ more, was, retired string }{
		{"", "{ }", "[]"},
		{"was: sum/old\n", "{sum/old }", "[]"},
		{"was: {arch: sm_90}\n", "{ sm_90}", "[]"},
		{"was: {kernel: sum/old, arch: sm_90}\n", "{sum/old sm_90}", "[]"},
		{"retire: [{case: large, reason: too long}, {entry: \"f<64>(int)\", reason: r}, {arch: sm_80, reason: r}]\n", "{ }", "[{large   too long} { f<64>(int)  r} {  sm_80 r}]"},
	} {
		s, err := Load(tree(t, plain(map[string]string{"kernels/sum/one/kernel.yaml": kernelText + c.more})), everything)
		if err != nil {
			t.Errorf("%s: %v", c.more, err)
			continue
		}
		if k := s.Kernels[0]; fmt.Sprint(k.Was) != c.was || fmt.Sprint(k.Retired) != c.retired {
			t.Errorf("%s: %v %v", c.more, k.Was, k.Retired)
		}
	}
}

func TestARetiredKernelIsNone(t *testing.T) {
	s, err := Load(tree(t, plain(map[string]string{"kernels/sum/two/kernel.yaml": "retire: superseded by one\n"})), everything)
	if err != nil || kernelNames(s) != "sum/one" || fmt.Sprint(s.Retired) != "map[sum/two:superseded by one]" {
		t.Fatalf("%v %v", s, err)
	}
	var missing *NoKernelError
	if _, err := s.Named("sum/two"); !errors.As(err, &missing) {
		t.Errorf("a retired kernel is found: %v", err)
	}
}

func TestDeclaredRefusals(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{kernelText + "was: sum/one\n", `:7: was: "sum/one" is this kernel itself`},
		{kernelText + "was: {}\n", ":7: was names the kernel, or the architecture, that this one comes from"},
		{kernelText + "was: {arch: 90}\n", `:7: "90" is not an architecture such as sm_90 or sm_90a`},
		{kernelText + "was: {kernle: sum/old}\n", `:7: unknown key "kernle"`},
		{kernelText + "retire: superseded\n", ":7: retire names one case, entry or arch each time; the reason alone retires a whole kernel, and then there is no other key"},
		{kernelText + "retire: [{case: large, arch: sm_80, reason: r}]\n", ":7: retire names one case, entry or arch each time; the reason alone retires a whole kernel, and then there is no other key"},
		{kernelText + "retire: [{case: large}]\n", ":7: what is retired needs a reason"},
		{kernelText + "retire: [{kase: large, reason: r}]\n", `:7: unknown key "kase"`},
		{"retire: \" \"\n", ":1: a kernel that is retired needs a reason"},
		{"retire: gone\nwas: sum/old\n", ": op is missing: which computation does this kernel implement?"},
	} {
		_, err := Load(tree(t, plain(map[string]string{"kernels/sum/one/kernel.yaml": c.text})), everything)
		var e *yamlfile.Error
		if !errors.As(err, &e) || !strings.HasSuffix(e.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}
