package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// fakeSanitizer runs the program that follows its options and writes the log that
// compute-sanitizer 2025.3.1 does. The kernel's behaviour says what each tool finds:
// racecheck=2.
func fakeSanitizer(args []string) int {
	if slices.Contains(args, "--version") {
		fmt.Print("NVIDIA (R) Compute Sanitizer\nCopyright (c) 2020-2025 NVIDIA Corporation\nVersion 2025.3.1.0 (build 36400806) (public-release)\n")
		return 0
	}
	flags := map[string]string{}
	for len(args) > 1 && strings.HasPrefix(args[0], "--") {
		flags[args[0]], args = args[1], args[2:]
	}
	tool := flags["--tool"]
	note("compute-sanitizer " + tool)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return failed(err)
	}
	b, err := behaviourOf(libraryOf(args))
	if err != nil {
		return failed(err)
	}
	log := "========= COMPUTE-SANITIZER\n"
	found := int(b.number(tool, 0))
	for range found {
		log += "========= Error: Race reported between Write access at scale+0x70 in scale.cu:4\n=========     and Read access at scale+0x90 in scale.cu:5 [96 hazards]\n========= \n"
	}
	summary := fmt.Sprintf("========= ERROR SUMMARY: %d errors\n", found)
	if tool == "racecheck" {
		summary = fmt.Sprintf("========= RACECHECK SUMMARY: %[1]d hazards displayed (%[1]d errors, 0 warnings)\n", found)
	}
	if b["torn"] != tool {
		log += summary
	}
	if err := os.WriteFile(flags["--log-file"], []byte(log), 0o644); err != nil {
		return failed(err)
	}
	return cmd.ProcessState.ExitCode()
}
