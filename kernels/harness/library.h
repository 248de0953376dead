// library.h: a shared object of somebody else's, opened.
#pragma once

#include <dlfcn.h>

#include <string>

#include "failure.h"

// open_library loads path with its own name space, so that contenders which
// define the same symbols do not see each other. It is never closed again: a
// contender may have left threads or exit handlers behind.
inline void* open_library(const std::string& path) {
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Failure("load", dlerror());
  return library;
}

// optional_symbol is null when the library does not export name itself.
template <class T>
T optional_symbol(void* library, const char* name) {
  return reinterpret_cast<T>(dlsym(library, name));
}

template <class T>
T required_symbol(void* library, const std::string& path, const char* name) {
  const T symbol = optional_symbol<T>(library, name);
  if (symbol == nullptr) throw Failure("symbol", path + " does not export " + name);
  return symbol;
}
