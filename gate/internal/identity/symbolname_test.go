package identity

import "testing"

func TestStripModule(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"_Z5scalePf", "_Z5scalePf"},
		{"_GLOBAL__N__864febaa_10_kernels_cu_5176ac7d", "_GLOBAL__N__"},
		{"_ZN33_GLOBAL__N__85571c2a_4_k_cu_table4anonEPf", "_ZN_GLOBAL__N__4anonEPf"},
		{
			"_ZN31_INTERNAL_85571c2a_4_k_cu_table33_GLOBAL__N__85571c2a_4_k_cu_table6hiddenE",
			"_ZN_INTERNAL__GLOBAL__N__6hiddenE",
		},
		{"_ZN3ab133_GLOBAL__N__85571c2a_4_k_cu_table4anonE", "_ZN3ab1_GLOBAL__N__4anonE"},
		{
			"$_ZN33_GLOBAL__N__85571c2a_4_k_cu_table4anonEPf$_ZN33_GLOBAL__N__85571c2a_4_k_cu_table4tailEPf",
			"$_ZN_GLOBAL__N__4anonEPf$_ZN_GLOBAL__N__4tailEPf",
		},
		{"__nv_static_23__3656fe8a_4_q_cu__Z2ddi__Z2stPf", "__nv_static__Z2stPf"},
		{"$__internal_12_$__cuda_sm20_div_rn_f64_full", "$__internal__$__cuda_sm20_div_rn_f64_full"},
		{"$str$1", "$str$1"},
		// What only looks like one keeps its name.
		{"_GLOBAL__N__mine", "_GLOBAL__N__mine"},
		{"_GLOBAL__N__864febaZ_10_kernels_cu_5176ac7d", "_GLOBAL__N__864febaZ_10_kernels_cu_5176ac7d"},
		{"_GLOBAL__N__864febaa_99_kernels_cu", "_GLOBAL__N__864febaa_99_kernels_cu"},
		{"__nv_static_99__3656fe8a_4_q_cu__Z2stPf", "__nv_static_99__3656fe8a_4_q_cu__Z2stPf"},
		{"__nv_static_", "__nv_static_"},
		{"my_INTERNAL_name", "my_INTERNAL_name"},
		{"", ""},
	} {
		if got := stripModule(c.name); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLocalNames(t *testing.T) {
	names := newEntryNames([]string{
		"_Z4sumEPf", "scale", "_ZN33_GLOBAL__N__85571c2a_4_k_cu_table4anonEPf", "__nv_static_23__3656fe8a_4_q_cu__Z2ddi__Z2stPf",
	})
	for _, c := range []struct{ name, want string }{
		{"_ZZ4sumEPfE4kept", "_ZZ<entry>E4kept"},
		{"_ZZ5scaleE4kept", "_ZZ<entry>E4kept"},
		{"_ZZN33_GLOBAL__N__01234567_4_k_cu_table4anonEPfE4kept", "_ZZ<entry>E4kept"},
		{"__nv_static_23__abcdefab_4_q_cu__Z2ddi__ZZ2stPfE4kept", "_ZZ<entry>E4kept"},
		{"_ZZ5otherPfE4kept", "_ZZ5otherPfE4kept"},
		{"scale", "scale"},
	} {
		if got := names.normalise(c.name); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
