package main

import (
	"os/exec"

	"example.com/checkout/gate/internal/report"
)

func main() { exec.Command("not", "counted", string(rune(report.Width))) }
