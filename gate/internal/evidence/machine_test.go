package evidence

import (
	"reflect"
	"strings"
	"testing"
)

func TestKeyChangesWithEveryField(t *testing.T) {
	key := h200.Key()
	if key != h200.Key() || !strings.HasPrefix(key, "h200-") || len(key) != len("h200-")+8 {
		t.Fatalf("key %q", key)
	}
	seen := map[string]string{key: "none"}
	fields := reflect.TypeOf(h200)
	for i := range fields.NumField() {
		m := h200
		f := reflect.ValueOf(&m).Elem().Field(i)
		f.SetString(f.String() + "x")
		name := fields.Field(i).Name
		if other, ok := seen[m.Key()]; ok {
			t.Errorf("changing %s gives the key of changing %s", name, other)
		}
		seen[m.Key()] = name
	}
	if len(seen) != fields.NumField()+1 || len(seen) < 8 {
		t.Errorf("%d keys", len(seen))
	}
	a, b := h200, h200
	a.Driver, a.Runtime = "580", "13.0"
	b.Driver, b.Runtime = "58", "013.0"
	if a.Key() == b.Key() {
		t.Error("text that moves from one field to the next leaves the key")
	}
}

func TestModel(t *testing.T) {
	for gpu, want := range map[string]string{
		"NVIDIA H200": "h200", "NVIDIA H100 80GB HBM3": "h100-80gb-hbm3", "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb",
		"Tesla V100-SXM2-16GB": "tesla-v100-sxm2-16gb", "NVIDIA GeForce RTX 5090": "geforce-rtx-5090", "": "unknown", "NVIDIA": "unknown",
		"../../etc": "etc", "\x1b[31mH200": "31mh200",
	} {
		if got := (Machine{GPU: gpu}).Model(); got != want {
			t.Errorf("%q is %q, want %q", gpu, got, want)
		}
	}
}

func TestIs(t *testing.T) {
	h100 := h200
	h100.GPU = "NVIDIA H100 80GB HBM3"
	for _, c := range []struct {
		machine Machine
		name    string
		want    bool
	}{
		{h200, "h200", true}, {h200, "H200", true}, {h200, h200.Key(), true}, {h200, "h20", false}, {h200, "h2000", false}, {h200, "", false},
		{h200, "h100", false}, {h200, "h200-00000000", false}, {h200, "NVIDIA H200", false}, {h200, "-", false},
		{h100, "h100", true}, {h100, "h100-80gb", true}, {h100, "h100-80gb-hbm3", true}, {h100, "h100-80", false}, {h100, "80gb", false}, {h100, "h100-", false},
		{Machine{}, "unknown", true}, {Machine{}, "", false},
	} {
		if got := c.machine.Is(c.name); got != c.want {
			t.Errorf("%s is %q: %v", c.machine.GPU, c.name, got)
		}
	}
}

func TestMachineSaysEveryField(t *testing.T) {
	want := "NVIDIA H200, driver 580.159.03, CUDA 13.0, 700 W, MIG Disabled, clocks unlocked"
	if got := h200.String(); got != want {
		t.Errorf("got %q", got)
	}
}

func TestCardIsNoUUID(t *testing.T) {
	const uuid = "GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f"
	card := CardOf(uuid)
	if len(card) != 12 || card != CardOf(uuid) || card == CardOf(uuid[:len(uuid)-1]+"e") || strings.Contains(uuid, card) || CardOf("") != "" {
		t.Errorf("%q", card)
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		arch, cc string
		want     bool
	}{
		{"sm_90", "9.0", true}, {"sm_90a", "9.0", true}, {"sm_90a", "9.1", false}, {"sm_90", "10.0", false}, {"sm_80", "9.0", false},
		{"sm_80", "8.6", true}, {"sm_80", "8.9", true}, {"sm_86", "8.0", false}, {"sm_86", "8.9", true}, {"sm_89", "8.6", false}, {"sm_89", "8.9", true},
		{"sm_100", "10.0", true}, {"sm_100", "10.3", true}, {"sm_103", "10.0", false}, {"sm_100a", "10.3", false}, {"sm_100f", "10.0", true},
		{"sm_120", "12.0", true}, {"sm_120", "1.2", false}, {"sm_100", "1.0", false}, {"sm_90", "90", false}, {"sm_90", "", false}, {"sm_90", "9", false},
		{"", "9.0", false}, {"sm_", "9.0", false}, {"compute_90", "9.0", false}, {"sm_9", "9.0", false}, {"sm_75", "7.5", true}, {"sm_70", "7.5", true},
	} {
		if got := (Machine{CC: c.cc}).Runs(c.arch); got != c.want {
			t.Errorf("%s on %s: %v", c.arch, c.cc, got)
		}
	}
}
