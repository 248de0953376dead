package command

import (
	"os"
	"slices"
	"strings"
)

// passed are the variables that every child sees. What is not named here does
// not pass: no credential, nothing that names a git repository, and nothing
// that adds flags to a compiler or code to a program.
var passed = []string{
	// Where programs and files are.
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TZ",
	// The driver's library lies outside the loader's folders in many containers.
	"LD_LIBRARY_PATH",
	// Which GPUs there are and how they are reached.
	"CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY",
	"CUDA_CACHE_PATH", "CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
	// A host compiler can be a link to ccache.
	"CCACHE_DIR", "CCACHE_DISABLE",
	// Git's configuration and how far up it looks, but no repository.
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
}

// environ is the child's environment. Of two values of one name the last holds.
func (c Command) environ() []string {
	env := []string{"LC_ALL=C"}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if slices.Contains(passed, name) || slices.ContainsFunc(c.Pass, func(p string) bool { return named(p, name) }) {
			env = append(env, e)
		}
	}
	if c.Confine != nil {
		env = append(env, c.Confine.environ()...)
	}
	return append(env, c.Env...)
}

func named(pattern, name string) bool {
	start, open := strings.CutSuffix(pattern, "*")
	return name == pattern || open && strings.HasPrefix(name, start)
}
