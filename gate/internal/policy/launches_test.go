package policy

import (
	"reflect"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func TestLaunchChanges(t *testing.T) {
	at := func(kernel string, block int) evidence.Launch {
		return evidence.Launch{Kernel: kernel, Block: [3]int{block, 1, 1}, Grid: [3]int{8, 8, 1}}
	}
	of := func(base, head []evidence.Launch) []LaunchChange {
		f := change(func(_ *KernelFacts, c *CaseFacts) {
			c.Profile.Base.Record.Launches, c.Profile.Head.Record.Launches = base, head
		})
		return launchChanges(&f.Kernels[0])
	}
	a, b := at("a(int)", 128), at("b(int)", 128)
	changed := func(what string, l evidence.Launch, n int) LaunchChange {
		return LaunchChange{Case: "small", Machine: "h200-00000000", Change: what, Kernel: l.Kernel, Block: l.Block, Grid: l.Grid, Count: n}
	}
	for _, c := range []struct {
		name       string
		base, head []evidence.Launch
		want       []LaunchChange
	}{
		{"equal", []evidence.Launch{a, b}, []evidence.Launch{a, b}, nil},
		{"another order", []evidence.Launch{a, b}, []evidence.Launch{b, a}, nil},
		{"another hash in a name", []evidence.Launch{at("_INTERNAL_0a1b2c3d_4_k_cu_11112222::a(int)", 128)}, []evidence.Launch{at("_INTERNAL_99999999_4_k_cu_33334444::a(int)", 128)}, nil},
		{"one more", []evidence.Launch{a}, []evidence.Launch{a, b}, []LaunchChange{changed("added", b, 1)}},
		{"twice more", []evidence.Launch{a}, []evidence.Launch{b, a, b}, []LaunchChange{changed("added", b, 2)}},
		{"another block", []evidence.Launch{a}, []evidence.Launch{at("a(int)", 256)}, []LaunchChange{changed("added", at("a(int)", 256), 1), changed("removed", a, 1)}},
		{"not profiled", nil, []evidence.Launch{a}, nil},
	} {
		if got := of(c.base, c.head); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := launchChanges(&KernelFacts{State: New, Cases: good().Kernels[0].Cases}); got != nil {
		t.Errorf("a new kernel: %+v", got)
	}
}
