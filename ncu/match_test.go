package ncu

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNameKey(t *testing.T) {
	for name, want := range map[string]string{
		"saxpy(int, float *)":                                "saxpy(int, float *)",
		"void  k<(int)3>(T1)":                                "void k<3>(T1)",
		"k<float, (ns::E<(int)3>::M)1,(bool)0>(const int *)": "k<float, 1,0>(const int *)",
		"k<(a)b, (c), (d>(int)":                              "k<(a)b, (c), (d>(int)",
		"f(int (3))":                                         "f(int (3))",
		"kernel$83":                                          "kernel",
		"nvfuser_f0_c1_r0_g0(x)":                             "nvfuser_f0_c1_r0_g0(x)",
		"_ZN43_GLOBAL__N__864febaa_10_kernels_cu_5176ac7d6kernelEv":             "_ZN_GLOBAL__N_6kernelEv",
		"_GLOBAL__N__864febaa_10_kernels_cu_5176ac7d_12::kernel()":              "_GLOBAL__N_::kernel()",
		"_ZN50_INTERNAL_28_cuda_equi_compute_30_cpp1_ii_1f510c1d9atomicAddEPjj": "_ZN_INTERNAL_9atomicAddEPjj",
		"_INTERNAL_0f1a2b3c_7_main_cu_9e8d7c6b_4242::f(int)":                    "_INTERNAL_::f(int)",
		"__nv_static_44__0f1a2b3c_7_main_cu_9e8d7c6b__Z1fi":                     "__nv_static__Z1fi",
		"_ZN3cub17CUB_200802_SM_90011EmptyKernelIvEEvv":                         "_ZN3cub_VEmptyKernelIvEEvv",
		"cub::CUB_200802_SM_900::EmptyKernel()":                                 "cub::_V::EmptyKernel()",
		"cub::CUB_200200_700_750_800_NS::EmptyKernel()":                         "cub::_V::EmptyKernel()",
		"_ZN3cub21_V_300500_SM_900_120011EmptyKernelIvEEvv":                     "_ZN3cub_VEmptyKernelIvEEvv",
		"cub::_V_300500_SM_900_1200::EmptyKernel()":                             "cub::_V::EmptyKernel()",
		"thrust::THRUST_200802_SM_900_NS::f()":                                  "thrust::_V::f()",
		"copy_blocked[v1,cw51cXTLSUwv1sDUaKthr](Array<long long, 1>)":           "copy_blocked(Array<long long, 1>)",
		"set_cache__FILE_ClimaAtmos_jl_src_cache_microphysics_cache_jl_L992":    "set_cache",
		"$1":                        "$1",
		"cub::CUB_200802_SM_900(x)": "cub::_V(x)",
	} {
		if got := NameKey(name); got != want {
			t.Errorf("NameKey(%q) = %q, want %q", name, got, want)
		}
		if again := NameKey(NameKey(name)); again != want && name[0] != '$' {
			t.Errorf("NameKey twice of %q = %q", name, again)
		}
	}
}

// TestNameKeyAcrossReleases: the same kernels in a report, whose names are those
// of the compiler, and in the CSV that ncu 2025.3.1 prints of it.
func TestNameKeyAcrossReleases(t *testing.T) {
	for report, csv := range map[string]string{
		"void t<(int)3, (bool)1, (Mode)1, (unsigned int)7, (char)99>(float *)":     "void t<3, 1, 1, 7, 99>(float *)",
		"void t<(int)-4, (bool)0, (Mode)0, (unsigned int)8, (char)100>(float *)":   "void t<(int)-4, 0, 0, 8, 100>(float *)",
		"void v<(long long)-5, (const int *)0>(float *)":                           "void v<(long long)-5, 0>(float *)",
		"void reduceCompleteUnroll<(unsigned int)512>(int *, int *, unsigned int)": "void reduceCompleteUnroll<512>(int *, int *, unsigned int)",
	} {
		if a, b := NameKey(report), NameKey(csv); a != b {
			t.Errorf("%q and %q", a, b)
		}
	}
	if NameKey("k<(int)3>()") == NameKey("k<(int)-3>()") {
		t.Error("two numbers have one key")
	}
	if deep := "k<" + strings.Repeat("(", 1<<20); NameKey(deep) != deep {
		t.Error("open parentheses are changed")
	}
}

// run makes launches from names, numbered in order.
func run(names ...string) []*Launch {
	var out []*Launch
	for i, n := range names {
		out = append(out, &Launch{ID: i, Kernel: n, Key: NameKey(n), Block: [3]int{32, 1, 1}, Grid: [3]int{1, 1, 1}})
	}
	return out
}

func describe(m Matching) string {
	s := ""
	for _, g := range m.Groups {
		s += fmt.Sprintf("%s/%d %d:%d ", g.Identity.Key, g.Identity.Variant, len(g.Base), len(g.Head))
	}
	for _, l := range m.Added {
		s += fmt.Sprintf("+%d", l.ID)
	}
	for _, l := range m.Removed {
		s += fmt.Sprintf("-%d", l.ID)
	}
	return s
}

func TestMatch(t *testing.T) {
	big := run("a")
	big[0].Grid[0] = 2
	for _, c := range []struct {
		name       string
		base, head []*Launch
		want       string
	}{
		{"equal", run("a", "b", "a"), run("a", "b", "a"), "a/0 2:2 b/0 1:1 "},
		{"one in front", run("a", "b"), run("x", "a", "b"), "a/0 1:1 b/0 1:1 x/0 0:1 +0"},
		{"one more", run("a"), run("a", "a", "a"), "a/0 1:3 +1+2"},
		{"one gone", run("a", "b"), run("b"), "a/0 1:0 b/0 1:1 -0"},
		{"other grid", run("a"), big, "a/0 1:0 a/0 0:1 +0-0"},
		{"hash", run("k$1", "k$1"), run("k$7", "k$7"), "k/0 2:2 "},
		{"names of one key", run("k$1", "k$2", "k$3"), run("k$2", "k$8", "k$9"), "k/0 1:1 k/1 1:1 k/2 1:1 "},
		{"one name more", run("k$1"), run("k$8", "k$9"), "k/0 1:1 k/1 0:1 +1"},
		{"empty", nil, run("a"), "a/0 0:1 +0"},
		{"both empty", nil, nil, ""},
	} {
		if got := describe(Match(c.base, c.head)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	m := Match(run("k$1", "k$2", "k$3"), run("k$2", "k$8", "k$9"))
	if m.Groups[1].Base[0].Kernel != "k$2" || m.Groups[1].Head[0].Kernel != "k$2" {
		t.Errorf("equal names are not paired first: %+v", m.Groups[1])
	}
}

// Each launch is in one group of its identity, a run matches itself, swapping
// the runs swaps added and removed, and the order of other kernels is without
// influence.
func TestMatchLaws(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 3))
	names := []string{"a", "b", "k$1", "k$2", "k$3", "c"}
	pick := func() []*Launch {
		var out []string
		for range rng.IntN(12) {
			out = append(out, names[rng.IntN(len(names))])
		}
		return run(out...)
	}
	for range 3000 {
		base, head := pick(), pick()
		m, back, self := Match(base, head), Match(head, base), Match(base, base)
		inBase, inHead := 0, 0
		for _, g := range m.Groups {
			inBase, inHead = inBase+len(g.Base), inHead+len(g.Head)
			for _, l := range append(append([]*Launch(nil), g.Base...), g.Head...) {
				if l.Key != g.Identity.Key {
					t.Fatalf("seed %d: %q in group %q", seed, l.Key, g.Identity.Key)
				}
			}
		}
		if inBase != len(base) || inHead != len(head) {
			t.Fatalf("seed %d: groups hold %d and %d launches of %d and %d", seed, inBase, inHead, len(base), len(head))
		}
		if len(m.Added) != len(back.Removed) || len(m.Removed) != len(back.Added) {
			t.Fatalf("seed %d: %s, backwards %s", seed, describe(m), describe(back))
		}
		if len(self.Added)+len(self.Removed) != 0 {
			t.Fatalf("seed %d: a run against itself: %s", seed, describe(self))
		}
	}
}

// The two sides of a real change have different names for all six kernels,
// which differ among each other only in a line number.
func TestMatchClima(t *testing.T) {
	base, err := readPath(t, corpus(t, "clima-a100-baseline.details.csv"))
	if err != nil {
		t.Fatal(err)
	}
	head, err := readPath(t, corpus(t, "clima-a100-mod.details.csv"))
	if err != nil {
		t.Fatal(err)
	}
	m := Match(base.Launches, head.Launches)
	if len(m.Groups) != 6 || len(m.Added)+len(m.Removed) != 0 {
		t.Fatal(describe(m))
	}
	for i, g := range m.Groups {
		b, h := g.Base[0].Kernel, g.Head[0].Kernel
		if b == h || b[len(b)-5:] != h[len(h)-5:] || g.Base[0].ID != i || g.Head[0].ID != i {
			t.Errorf("%s is matched with %s", b, h)
		}
	}
}
