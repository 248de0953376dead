// json.h: one JSON object, built field by field, on one line.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A Json is an object under construction. Numbers that JSON cannot hold (NaN,
// infinities) and absent values become null; bytes that are not UTF-8 become
// U+FFFD, since names and messages come from other people's files.
class Json {
 public:
  Json& field(std::string_view key, std::string_view value) { return raw(key, quote(value)); }
  Json& field(std::string_view key, const char* value) { return field(key, std::string_view(value)); }
  Json& field(std::string_view key, const std::string& value) { return field(key, std::string_view(value)); }
  Json& field(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  Json& field(std::string_view key, int value) { return raw(key, std::to_string(value)); }
  Json& field(std::string_view key, int64_t value) { return raw(key, std::to_string(value)); }
  Json& field(std::string_view key, uint64_t value) { return raw(key, std::to_string(value)); }
  Json& field(std::string_view key, double value) { return raw(key, number(value)); }
  Json& field(std::string_view key, const Json& value) { return raw(key, value.text()); }
  Json& null(std::string_view key) { return raw(key, "null"); }
  // verbatim takes a value that is JSON already.
  Json& verbatim(std::string_view key, const std::string& json) { return raw(key, json); }

  template <class T>
  Json& field(std::string_view key, const std::optional<T>& value) {
    return value ? field(key, *value) : null(key);
  }
  Json& field(std::string_view key, const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ",") + quote(value);
    return raw(key, "[" + list + "]");
  }
  Json& field(std::string_view key, const std::vector<double>& values) {
    std::string list;
    for (double value : values) list += (list.empty() ? "" : ",") + number(value);
    return raw(key, "[" + list + "]");
  }

  std::string text() const { return "{" + fields_ + "}"; }

 private:
  Json& raw(std::string_view key, const std::string& value) {
    if (!fields_.empty()) fields_ += ',';
    fields_ += quote(key) + ":" + value;
    return *this;
  }

  // The shortest decimal that reads back as the same double.
  static std::string number(double value) {
    if (!std::isfinite(value)) return "null";
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return std::string(text, end);
  }

  static std::string quote(std::string_view s) {
    std::string out = "\"";
    for (size_t i = 0; i < s.size();) {
      const size_t length = sequence(s.substr(i));
      if (length == 0) {
        out += "\xEF\xBF\xBD";
        ++i;
        continue;
      }
      const unsigned char c = static_cast<unsigned char>(s[i]);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += static_cast<char>(c);
      } else if (c < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
        out += escaped;
      } else {
        out.append(s.substr(i, length));
      }
      i += length;
    }
    return out + '"';
  }

  // Bytes of the UTF-8 sequence that s begins with; 0 when there is none.
  static size_t sequence(std::string_view s) {
    const unsigned char c = static_cast<unsigned char>(s[0]);
    const size_t length = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (length == 0 || length > s.size()) return 0;
    for (size_t i = 1; i < length; ++i)
      if ((static_cast<unsigned char>(s[i]) & 0xC0) != 0x80) return 0;
    const unsigned char second = length > 1 ? s[1] : 0;
    const bool overlong = (c == 0xE0 && second < 0xA0) || (c == 0xF0 && second < 0x90);
    const bool surrogate = c == 0xED && second >= 0xA0, too_large = c == 0xF4 && second >= 0x90;
    return overlong || surrogate || too_large ? 0 : length;
  }

  std::string fields_;
};
