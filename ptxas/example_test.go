package ptxas_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/kernelgate/gate/ptxas"
)

const buildLog = `[1/2] nvcc -Xptxas -v -arch=sm_90 -c kernels.cu
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z9recursivePii' for 'sm_90'
ptxas info    : Function properties for _Z9recursivePii
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
ptxas info    : Compile time = 1.645 ms
ptxas info    : Function properties for _Z9fibonaccii
    24 bytes stack frame, 20 bytes spill stores, 20 bytes spill loads
`

func ExampleParse() {
	parsed, err := ptxas.Parse(strings.NewReader(buildLog), "build.log")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range parsed.Entries {
		fmt.Println(e.Arch, e.Name, "registers:", e.Registers)
		fmt.Println("own spills:", e.SpillBytes(), "with callees:", e.SpillBytes().Plus(e.CalleeSpillBytes()))
		fmt.Println("cumulative stack:", e.CumulativeStackBytes)
	}
	// Output:
	// sm_90 _Z9recursivePii registers: 24
	// own spills: 0 with callees: 40
	// cumulative stack: unknown
}

// A log without a kernel is an error, because it usually means that -v was
// lost.
func ExampleNoEntriesError() {
	_, err := ptxas.Parse(strings.NewReader("nvcc -c kernels.cu\n"), "build.log")
	var none *ptxas.NoEntriesError
	if errors.As(err, &none) {
		fmt.Println(none.Reason)
		fmt.Println(err)
	}
	// Output:
	// no-compiler-output
	// build.log: no output of ptxas: pass -Xptxas -v or --resource-usage to nvcc
}

// Mixed output of parallel compilers would pair one kernel's name with the
// registers of another.
func ExampleSyntaxError() {
	_, err := ptxas.Parse(strings.NewReader(`ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Used 40 registers
ptxas info    : Used 96 registers
`), "make.log")
	var syntax *ptxas.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println(err)
		fmt.Println("hint:", syntax.Hint)
	}
	// Output:
	// make.log:2: output of several compilers is mixed, or lines are missing: an entry function begins, but entry a (line 1) has no register count
	// hint: let each compiler write its output in one piece: make -Otarget, ninja, or a single job; nvcc without --threads
}

func ExampleKey() {
	fmt.Println(ptxas.Key("_ZN43_GLOBAL__N__04cf063f_10_kernels_cu_5fca777a9anonymousEPfi"))
	fmt.Println(ptxas.Key("_ZN3cub17CUB_200802_SM_90011EmptyKernelIvEEvv"))
	fmt.Println(ptxas.Key("forward_tile$83"))
	// Output:
	// _ZN25_GLOBAL__N__10_kernels_cu9anonymousEPfi
	// _ZN3cub2_V11EmptyKernelIvEEvv
	// forward_tile
}

func ExampleParseResourceUsage() {
	usage, err := ptxas.ParseResourceUsage(strings.NewReader(`
Fatbin elf code:
================
arch = sm_90

Resource usage:
 Common:
  GLOBAL:0
 Function _Z9transposePKfPfi:
  REG:28 STACK:0 SHARED:5120 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
`), "kernels.o")
	if err != nil {
		log.Fatal(err)
	}
	f := usage.Functions[0]
	fmt.Println(f.Name, "registers:", f.Registers, "shared:", f.StaticSharedBytes(), "printed:", f.SharedBytes)
	// Output:
	// _Z9transposePKfPfi registers: 28 shared: 4096 printed: 5120
}

// Two registers more can halve the number of resident blocks.
func ExampleOccupancy() {
	for _, registers := range []int{64, 66} {
		r, err := ptxas.Occupancy("sm_90a", ptxas.Launch{RegistersPerThread: registers, BlockSize: 512})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d registers (allocated as %d): %d blocks, %.0f %% occupancy, limited by %v\n",
			registers, r.AllocatedRegisters, r.BlocksPerSM, r.Percent, r.Limiters)
	}
	// Output:
	// 64 registers (allocated as 64): 2 blocks, 50 % occupancy, limited by [registers]
	// 66 registers (allocated as 72): 1 blocks, 25 % occupancy, limited by [registers]
}

// From a line of a build log to the occupancy of a launch.
func ExampleEntry_Occupancy() {
	parsed, err := ptxas.Parse(strings.NewReader(buildLog), "build.log")
	if err != nil {
		log.Fatal(err)
	}
	r, err := parsed.Entries[0].Occupancy(ptxas.Launch{BlockSize: 256, DynamicSharedBytes: 96 << 10})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d blocks, %.0f %% occupancy, limited by %v\n", r.BlocksPerSM, r.Percent, r.Limiters)
	// Output:
	// 2 blocks, 25 % occupancy, limited by [shared memory]
}

// Only io.EOF says that the text was whole.
func ExampleReader() {
	r := ptxas.NewReader(strings.NewReader(buildLog), "build.log")
	for {
		record, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if e := record.Entry; e != nil {
			fmt.Println(e.Name, e.Registers)
		}
	}
	fmt.Println("units:", r.Units())
	// Output:
	// _Z9recursivePii 24
	// units: 1
}

// Lists the functions of a large library in little memory.
func ExampleResourceReader() {
	r := ptxas.NewResourceReader(strings.NewReader(`arch = sm_90
Resource usage:
 Function _Z9transposePKfPfi:
  REG:28 STACK:0 SHARED:5120 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
`), "library.so")
	for {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(f.Arch, f.Name, f.Registers)
	}
	// Output:
	// sm_90 _Z9transposePKfPfi 28
}

// What was read before an error stands beside it.
func ExampleParse_withoutVerbose() {
	parsed, err := ptxas.Parse(strings.NewReader(
		"ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to a call in the function 'k'\n"), "build.log")
	var none *ptxas.NoEntriesError
	if errors.As(err, &none) {
		for _, a := range parsed.Advisories {
			fmt.Println(a.Code, a.Function)
		}
	}
	// Output:
	// C7510 k
}
