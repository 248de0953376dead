package bundle

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func small(t testing.TB) []byte {
	t.Helper()
	id := evidence.Identity{Code: "v2" + strings.Repeat("a", 64), Host: "v2" + strings.Repeat("b", 64)}
	record, err := evidence.Encode(&evidence.Record{Schema: evidence.Schema, Tier: evidence.Static, Address: evidence.Address{Identity: id},
		Metrics: evidence.Metrics{"ptxas.registers": evidence.Of(32, "registers/thread")}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := Write(Manifest{Head: strings.Repeat("1", 40), Base: strings.Repeat("2", 40), Shard: Shard{1, 1}, Kernels: []Kernel{{Name: "op/k", File: "kernels/op/k/kernel.yaml",
		Arch: "sm_90", Op: "op", Code: id.Code, Host: id.Host, Cases: []string{"small"}}}}, []Entry{{Record: record}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestWhatIsWrittenIsRead, and the same input gives the same bytes.
func TestWhatIsWrittenIsRead(t *testing.T) {
	data := small(t)
	b, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Kernels) != 1 || b.Kernels[0].Name != "op/k" || len(b.entries) != 1 || !bytes.Equal(data, small(t)) {
		t.Errorf("%+v", b)
	}
}

// TestNoOtherBytesAreABundle: whatever bit is changed, and wherever the file is
// cut, it is refused, or says the same.
func TestNoOtherBytesAreABundle(t *testing.T) {
	data := small(t)
	want, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) {
		if b, err := Read(data[:n]); err == nil {
			t.Fatalf("cut at %d: %+v", n, b)
		}
		for bit := range 8 {
			other := bytes.Clone(data)
			other[n] ^= 1 << bit
			if b, err := Read(other); err == nil && !reflect.DeepEqual(b.Manifest, want.Manifest) {
				t.Fatalf("bit %d of byte %d: %+v", bit, n, b.Manifest)
			}
		}
	}
}

// TestNoiseEndsNothing: any bytes give an error and no panic.
func TestNoiseEndsNothing(t *testing.T) {
	data, random := small(t), rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		other := bytes.Clone(data)
		for range 1 + random.IntN(8) {
			at := random.IntN(len(other))
			other = append(other[:at], append([]byte{byte(random.Uint32())}, other[min(at+random.IntN(3), len(other)):]...)...)
		}
		Read(other)
	}
}
