package toolchain

import (
	"errors"
	"path/filepath"

	"github.com/kernelgate/gate/gate/internal/exit"
)

// CacheDir is gate's own cache folder: $GATE_CACHE, else $XDG_CACHE_HOME/gate,
// else $HOME/.cache/gate. It need not exist yet.
func CacheDir(env func(string) string) (string, error) {
	if dir := env("GATE_CACHE"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", exit.Usagef("export GATE_CACHE=/a/folder", "GATE_CACHE is %q, which is not an absolute path", dir)
		}
		return filepath.Clean(dir), nil
	}
	// The XDG specification says that a relative XDG_CACHE_HOME is ignored.
	if dir := env("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "gate"), nil
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "gate"), nil
	}
	return "", errors.New("no cache folder: none of GATE_CACHE, XDG_CACHE_HOME and HOME is set")
}
