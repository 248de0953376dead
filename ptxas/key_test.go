package ptxas

import "testing"

func TestKey(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"_Z5saxpyifPKfPf", "_Z5saxpyifPKfPf"},
		{"kernel", "kernel"},
		{"dectc_forward$83", "dectc_forward"},
		{"f$1$22", "f"},
		{"$83", "$83"},
		{"f$", "f$"},
		{"price$usd", "price$usd"},
		{"_ZN43_GLOBAL__N__04cf063f_10_kernels_cu_5fca777a9anonymousEPfi", "_ZN25_GLOBAL__N__10_kernels_cu9anonymousEPfi"},
		{"_ZN41_INTERNAL_04cf063f_10_kernels_cu_5fca777a43_GLOBAL__N__04cf063f_10_kernels_cu_5fca777a12table_lookupEfi", "_ZN23_INTERNAL_10_kernels_cu25_GLOBAL__N__10_kernels_cu12table_lookupEfi"},
		{"_ZN50_INTERNAL_28_cuda_equi_compute_30_cpp1_ii_1f510c1d10make_uint2Ejj", "_ZN41_INTERNAL_28_cuda_equi_compute_30_cpp1_ii10make_uint2Ejj"},
		{"_ZN7sputnik48_GLOBAL__N__a430860f_15_cuda_spmm_cu_cc_6504ba7b6KernelEv", "_ZN7sputnik30_GLOBAL__N__15_cuda_spmm_cu_cc6KernelEv"},
		{"_ZN2cv82_GLOBAL__N__58_tmpxft_00003916_00000000_9_add_weighted_compute_61_cpp1_ii_71482d891fEv", "_ZN2cv46_GLOBAL__N__31_add_weighted_compute_61_cpp1_ii1fEv"},
		{"__nv_static_27__14_coords_cpp1_ii_7126c51d_const_param", "__nv_static_14_coords_cpp1_ii_const_param"},
		{"__nv_static_32__f71ea252_10_library_cu_2f7c023e__Z9unrelatedPf", "__nv_static_10_library_cu__Z9unrelatedPf"},
		{"__nv_static_25__3c193e71_4_a_cu__Z3locfi__Z5kstatPf", "__nv_static_4_a_cu__Z5kstatPf"},
		{"_ZN3cub17CUB_200802_SM_90011EmptyKernelIvEEvv", "_ZN3cub2_V11EmptyKernelIvEEvv"},
		{"_ZN3cub25CUB_300001_SM_800_900_10011EmptyKernelIvEEvv", "_ZN3cub2_V11EmptyKernelIvEEvv"},
		{"_ZN6thrust23THRUST_200802_SM_900_NS8cuda_cubE", "_ZN6thrust2_V8cuda_cubE"},
		{"_ZN3cub21_V_300500_SM_900_120011EmptyKernelIvEEvv", "_ZN3cub2_V11EmptyKernelIvEEvv"},
		{"_ZN3fooE10_V_1_SM_x", "_ZN3fooE10_V_1_SM_x"},
		{"__omp_offloading_10305_40788d_main_l23", "__omp_offloading__main_l23"},
		{"_ZN3fooE5CUB_xv", "_ZN3fooE5CUB_xv"},
		{"_Z99CUB_1_SM_9", "_Z99CUB_1_SM_9"},
	} {
		if got := Key(c.name); got != c.want {
			t.Errorf("Key(%q) = %q, want %q", c.name, got, c.want)
		}
		if got := normalise(c.name); got != c.want {
			t.Errorf("normalise(%q) = %q, want %q", c.name, got, c.want)
		}
		if got := Key(c.want); got != c.want {
			t.Errorf("Key(%q) = %q, want it unchanged", c.want, got)
		}
	}
}

// TestKeyAcrossBuilds: the same source in another folder, of another content
// and with a newer CUB has the same key.
func TestKeyAcrossBuilds(t *testing.T) {
	for _, pair := range [][2]string{
		{"_ZN43_GLOBAL__N__04cf063f_10_kernels_cu_5fca777a9anonymousEPfi", "_ZN43_GLOBAL__N__864febaa_10_kernels_cu_5176ac7d9anonymousEPfi"},
		{"_ZN3cub17CUB_200802_SM_90011EmptyKernelIvEEvv", "_ZN3cub17CUB_300001_SM_75011EmptyKernelIvEEvv"},
		{"_ZN3cub17CUB_300001_SM_90011EmptyKernelIvEEvv", "_ZN3cub21_V_300500_SM_900_120011EmptyKernelIvEEvv"},
		{"_ZN2cv82_GLOBAL__N__58_tmpxft_00003916_00000000_9_add_weighted_compute_61_cpp1_ii_71482d891fEv", "_ZN2cv82_GLOBAL__N__58_tmpxft_00009999_00000000_9_add_weighted_compute_61_cpp1_ii_71482d891fEv"},
		{"__nv_static_25__3c193e71_4_a_cu__Z3locfi__Z5kstatPf", "__nv_static_25__00000000_4_a_cu_deadbeef__Z5kstatPf"},
	} {
		if a, b := Key(pair[0]), Key(pair[1]); a != b {
			t.Errorf("%q and %q", a, b)
		}
	}
	a, b := Key("_ZN40_GLOBAL__N__04cf063f_7_kern_cu_5fca777a1fEPfi"), Key("_ZN40_GLOBAL__N__04cf063f_7_other_c_5fca777a1fEPfi")
	if a == b {
		t.Errorf("two files share the key %q", a)
	}
}
