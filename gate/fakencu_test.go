package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// fakeNCU runs the program that follows its options and writes a raw page with the
// counters that were asked for, as ncu 2025.3.1 does. $FAKE_NCU makes it fail:
// "permission", or "unknown=COUNTER".
func fakeNCU(args []string) int {
	if slices.Contains(args, "--version") {
		fmt.Print("NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2025 NVIDIA Corporation\nVersion 2025.3.1.0 (build 36398880) (public-release)\n")
		return 0
	}
	flags, program := ncuFlags(args)
	counters := strings.Split(flags["--metrics"], ",")
	note("ncu " + flags["--metrics"])
	note("starts ncu for " + strings.Join(runsOf(program), " "))
	trouble, counter, _ := strings.Cut(os.Getenv("FAKE_NCU"), "=")
	if trouble == "unknown" && slices.Contains(counters, counter) {
		return ncuSays(flags, "==ERROR== Failed to find metric "+counter+"\n", 1)
	}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return failed(err)
	}
	log := "==PROF== Connected to process 1788 (/tmp/gate-harness)\n"
	if trouble == "permission" {
		return ncuSays(flags, log+"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n", 1)
	}
	if exit != nil {
		return ncuSays(flags, log+"==ERROR== The application returned an error code ("+strconv.Itoa(exit.ExitCode())+").\n", exit.ExitCode())
	}
	b, err := behaviourOf(libraryOf(program))
	if err != nil {
		return failed(err)
	}
	page := rawPage(counters, b, runsOf(program))
	if b["torn"] == "ncu" {
		page = page[:len(page)/2]
	}
	return ncuSays(flags, log+"==PROF== Disconnected from process 1788\n"+page, 0)
}

// ncuFlags splits ncu's options from the program that follows them. All but --csv
// have a value.
func ncuFlags(args []string) (flags map[string]string, program []string) {
	flags = map[string]string{}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--csv":
		case strings.HasPrefix(args[i], "--"):
			flags[args[i]] = args[i+1]
			i++
		default:
			return flags, args[i:]
		}
	}
	return flags, nil
}

func ncuSays(flags map[string]string, text string, status int) int {
	if err := os.WriteFile(flags["--log-file"], []byte(text), 0o644); err != nil {
		return failed(err)
	}
	return status
}

func libraryOf(program []string) string {
	i := slices.Index(program, "--kernel")
	_, path, _ := strings.Cut(program[i+1], "=")
	return path
}

// runsOf are the kernels and cases of a call of the harness, in their order.
func runsOf(program []string) []string {
	var runs []string
	for i, arg := range program {
		if arg == "--run" {
			runs = append(runs, program[i+1])
		}
	}
	return runs
}

// rawPage is a table of one launch for each run, or of as many as the behaviour says.
// "eager" launches are made and were not captured; a "renumbered" table begins anew
// with each run.
func rawPage(counters []string, b behaviour, runs []string) string {
	names := []string{"ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"}
	units := make([]string, len(names))
	for _, c := range counters {
		unit, _ := counterValue(c, b)
		names, units = append(names, c), append(units, unit)
	}
	rows, id := [][]string{names, units}, 0
	for _, run := range runs {
		_, kase, _ := strings.Cut(run, "@")
		on := b.on(kase)
		row := []string{"", "1788", "gate-harness", "127.0.0.1", "toy", "1", "7", fmt.Sprintf("(%g, 1, 1)", on.number("block", 128)), "(32, 1, 1)", "0", "9.0"}
		for _, c := range counters {
			_, value := counterValue(c, on)
			row = append(row, strconv.FormatFloat(value, 'f', 2, 64))
		}
		if b["renumbered"] != "" {
			id = 0
		}
		for range int(on.number("launches", 1) + on.number("eager", 0)) {
			row[0] = strconv.Itoa(id)
			rows, id = append(rows, slices.Clone(row)), id+1
		}
	}
	var text strings.Builder
	for _, cells := range rows {
		text.WriteString(`"` + strings.Join(cells, `","`) + "\"\n")
	}
	return text.String()
}

func counterValue(name string, b behaviour) (unit string, value float64) {
	switch {
	case name == "gpu__time_duration.sum":
		return "ns", b.number("latency", 10000)
	case name == "sm__warps_active.avg.pct_of_peak_sustained_active":
		return "%", b.number("occupancy", 50)
	case strings.HasPrefix(name, "l1tex__data_bank_conflicts"):
		return "", b.number("conflicts", 0)
	case strings.HasPrefix(name, "sm__pipe_tensor_type_"):
		return "%", b.number("tensor", 0)
	case strings.Contains(name, "pct"):
		return "%", 20
	case strings.HasPrefix(name, "dram__bytes"), strings.HasPrefix(name, "lts__t_bytes"):
		return "byte", 32768
	case name == "launch__registers_per_thread":
		return "register/thread", 16
	}
	return "", 8
}
