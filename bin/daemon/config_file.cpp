// Reads the TOML file. toml++ stays in this file: it is large.
#include <toml++/toml.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>

#include "common/nearest.hpp"
#include "daemon/config.hpp"

namespace shardbusd {
namespace {

// Reads one file into settings; `file` is how messages name it.
class FileReader {
 public:
  FileReader(std::string file, Source& source) : file_(std::move(file)), source_(source) {}

  void read(std::string text) {
    // The parser stops at its first error. Blank that line and go on, so that one pass finds all;
    // but only where the line is a whole statement: half of one would bring false errors.
    static const std::regex kStatement(R"(\s*[A-Za-z0-9_.\-"']+\s*=.*)");
    for (int tries = 0; tries < kMaxSyntaxErrors; ++tries) {
      try {
        return read_table(toml::parse(text), "");
      } catch (const toml::parse_error& error) {
        problem(error.source(), "not valid TOML: " + std::string(error.description()));
        if (!blank_line(text, error.source().begin.line, kStatement)) return;
      }
    }
  }

 private:
  static constexpr int kMaxSyntaxErrors = 50;

  static bool blank_line(std::string& text, std::size_t line, const std::regex& only) {
    std::size_t begin = 0;
    for (std::size_t i = 1; i < line && begin != std::string::npos; ++i) {
      begin = text.find('\n', begin);
      if (begin != std::string::npos) ++begin;
    }
    if (begin == std::string::npos) return false;
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (!std::regex_match(text.substr(begin, end - begin), only)) return false;
    text.erase(begin, end - begin);
    return true;
  }

  void read_table(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) read_node(prefix + std::string(key.str()), node);
  }

  void read_node(const std::string& key, const toml::node& node) {
    const auto found = std::ranges::find(option_table(), key, &Option::key);
    if (found != option_table().end()) {
      read_value(*found, node);
    } else if (const toml::table* table = node.as_table(); table != nullptr && is_section(key)) {
      read_table(*table, key + ".");
    } else if (table != nullptr && !table->empty()) {
      problem(node.source(), "unknown section '" + key + "'");
      read_table(*table, key + ".");
    } else {
      problem(node.source(), unknown_key(key));
    }
  }

  static bool is_section(const std::string& key) {
    return std::ranges::any_of(
        option_table(), [&](const Option& option) { return option.key.starts_with(key + "."); });
  }

  static std::string unknown_key(const std::string& key) {
    const std::string unknown = "unknown key '" + key + "'";
    const std::string last = key.substr(key.rfind('.') + 1);
    const auto elsewhere = std::ranges::find(option_table(), last, [](const Option& option) {
      return option.key.substr(option.key.rfind('.') + 1);
    });
    if (elsewhere != option_table().end())
      return unknown + "; '" + last + "' belongs " + place_of(elsewhere->key);
    std::vector<std::string> keys;
    for (const Option& option : option_table()) keys.emplace_back(option.key);
    std::string near = shardbus_tools::nearest(key, keys);
    if (near.empty()) near = shardbus_tools::nearest(last, keys);
    return unknown + (near.empty() ? "; see shardbusd --help" : "; did you mean '" + near + "'?");
  }

  static std::string place_of(std::string_view key) {
    const std::size_t dot = key.find('.');
    if (dot == std::string_view::npos) return "to the top of the file, before any [section]";
    return "into [" + std::string(key.substr(0, dot)) + "]";
  }

  void read_value(const Option& option, const toml::node& node) {
    std::string wrong_type;
    std::optional<std::vector<std::string>> texts = to_texts(option, node, wrong_type);
    if (!texts)
      return problem(node.source(), std::string(option.key) + ": " + wrong_type + "; use " +
                                        describe_values(option));
    source_.push_back({where(node.source()),
                       static_cast<std::size_t>(&option - option_table().data()), std::move(*texts),
                       "", node.source().begin.line});
  }

  // The value as the texts that `assign` takes, if it has the TOML type of the option.
  static std::optional<std::vector<std::string>> to_texts(const Option& option,
                                                          const toml::node& node,
                                                          std::string& wrong_type) {
    DaemonOptions any;
    const Field field = option.field(any);
    std::ostringstream shown;
    node.visit([&](const auto& value) { shown << value; });
    if (std::holds_alternative<bool*>(field)) {
      if (node.is_boolean()) return {{node.ref<bool>() ? "true" : "false"}};
      wrong_type = shown.str() + " is neither true nor false";
    } else if (std::holds_alternative<std::uint32_t*>(field)) {
      if (node.is_integer()) return {{std::to_string(node.ref<std::int64_t>())}};
      wrong_type = shown.str() + " is not a whole number";
    } else if (std::holds_alternative<std::vector<std::string>*>(field)) {
      if (auto list = to_list(node)) return list;
      wrong_type = shown.str() + " is not a list of strings";
    } else {
      if (node.is_string()) return {{node.ref<std::string>()}};
      wrong_type = shown.str() + " is not a string";
      if (std::holds_alternative<milliseconds*>(field) && node.is_integer())
        wrong_type = shown.str() + " needs a unit, such as \"" + shown.str() + "s\"";
    }
    return {};
  }

  static std::optional<std::vector<std::string>> to_list(const toml::node& node) {
    const toml::array* array = node.as_array();
    if (array == nullptr) return {};
    std::vector<std::string> texts;
    for (const toml::node& element : *array) {
      if (!element.is_string()) return {};
      texts.push_back(element.ref<std::string>());
    }
    return texts;
  }

  [[nodiscard]] std::string where(const toml::source_region& at) const {
    return file_ + ":" + std::to_string(at.begin.line);
  }
  void problem(const toml::source_region& at, const std::string& text) {
    source_.push_back({where(at), 0, {}, text, at.begin.line});
  }

  std::string file_;
  Source& source_;
};

}  // namespace

Source read_file(const std::filesystem::path& file) {
  Source source;
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  const int reason = errno;
  std::error_code error;
  const bool folder = std::filesystem::is_directory(file, error);
  if (!stream || folder) {
    const std::string why = folder ? "it is a folder" : std::strerror(reason);
    source.push_back({file.string(), 0, {}, "cannot be read: " + why});
    return source;
  }
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  FileReader(file.string(), source).read(text);
  // Syntax errors were found before, and toml++ sorts by key; messages come in the file's order.
  std::ranges::stable_sort(source, {}, &Setting::line);
  return source;
}

}  // namespace shardbusd
