package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

var notInKey = regexp.MustCompile(`[^0-9a-z]+`)

// ToolchainKey names the compiler in whose place of a store static figures are
// kept, as a machine's key does for what was measured: "cuda-13-0-88-" and a hash.
func ToolchainKey(compiler string) string {
	sum := sha256.Sum256([]byte("gate/toolchain/v1\x00" + compiler))
	return "cuda-" + notInKey.ReplaceAllString(compiler, "-") + "-" + hex.EncodeToString(sum[:4])
}

// Kept is the static record of a kernel as a store keeps it: by the compiler
// that made the code, and, in the place of the case, the architecture.
func (r *Record) Kept(arch string, p Provenance) *Record {
	kept := *r
	kept.Provenance = p
	kept.Address.Machine, kept.Address.Case = ToolchainKey(p.Compiler), arch
	return &kept
}
