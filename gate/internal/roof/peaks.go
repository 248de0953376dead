package roof

// Units are the kinds of arithmetic that peaks are known of: floating point by the
// width of what is multiplied, tf32 and bf16 by their names, and 8-bit integers.
var Units = []string{"f64", "f32", "tf32", "f16", "bf16", "f8", "i8"}

// peaks are operations that a multiprocessor ends a cycle, by compute capability:
// the larger of its tensor cores (dense) and its other units. NVIDIA publishes
// them as operations a second of one product, which is multiprocessors × clock ×
// these; the products are named, and a test computes their figures again. An
// architecture is added with its figures, and is unknown until then.
var peaks = map[string]map[string]int{
	"8.0":  {"f64": 128, "f32": 128, "tf32": 1024, "f16": 2048, "bf16": 2048, "i8": 4096},               // A100
	"8.6":  {"f64": 4, "f32": 256, "tf32": 512, "f16": 1024, "bf16": 1024, "i8": 2048},                  // RTX A6000
	"8.9":  {"f64": 4, "f32": 256, "tf32": 512, "f16": 1024, "bf16": 1024, "f8": 2048, "i8": 2048},      // L40S
	"9.0":  {"f64": 256, "f32": 256, "tf32": 2048, "f16": 4096, "bf16": 4096, "f8": 8192, "i8": 8192},   // H100, H200
	"10.0": {"f64": 128, "f32": 256, "tf32": 4096, "f16": 8192, "bf16": 8192, "f8": 16384, "i8": 16384}, // B200
	"12.0": {"f64": 4, "f32": 256, "tf32": 512, "f16": 1024, "bf16": 1024, "f8": 2048, "i8": 2048},      // RTX PRO 6000
}
