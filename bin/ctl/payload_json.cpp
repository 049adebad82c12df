#include "ctl/payload_json.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace shardbusctl {
namespace {

using shardbus::Errc;
using shardbus::Result;
using shardbus::Status;

// Builds the value from the parser's events, because only they show the text of a number: the
// parser itself turns an integer above 64 bits into a rounded float.
class Builder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") == std::string::npos)
      return refuse(text + " fits no 64-bit integer; send it as a string");
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("binary"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (open_.back()->contains(key)) return refuse("the key \"" + key + "\" stands twice");
    key_ = std::move(key);
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ..." without the number.
    const std::string text = error.what();
    return refuse(text.substr(std::min(text.find("] ") + 2, text.size())));
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  Json take() { return std::move(root_); }

 private:
  bool refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  Json* place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) return &open_.back()->emplace_back(std::move(value));
    return &((*open_.back())[key_] = std::move(value));
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kMaxDepth)
      return refuse("nested more than " + std::to_string(kMaxDepth) + " deep");
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  // Into root_. A container grows only while it is the last one here, so the pointers stay good.
  std::vector<Json*> open_;
  std::string key_;
  std::string problem_;
};

std::string to_hex(const char* data, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(size * 2);
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(data[i]);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<std::string> from_hex(const Json& json) {
  if (!json.is_string()) return {};
  const auto& hex = json.get_ref<const std::string&>();
  if (hex.size() % 2 != 0) return {};
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    if (std::isxdigit(static_cast<unsigned char>(hex[i])) == 0 ||
        std::isxdigit(static_cast<unsigned char>(hex[i + 1])) == 0)
      return {};
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

using Packer = msgpack::packer<msgpack::sbuffer>;

// Each gives false, with `problem` set, where the JSON has a form that means nothing.
class Writer {
 public:
  explicit Writer(msgpack::sbuffer& out) : out_(out), packer_(out) {}

  bool write(const Json& json) {
    switch (json.type()) {
      case Json::value_t::boolean:
        packer_.pack(json.get<bool>());
        return true;
      case Json::value_t::number_integer:
        packer_.pack_int64(json.get<std::int64_t>());
        return true;
      case Json::value_t::number_unsigned:
        packer_.pack_uint64(json.get<std::uint64_t>());
        return true;
      case Json::value_t::number_float:
        write_double(json.get<double>());
        return true;
      case Json::value_t::string:
        packer_.pack(json.get_ref<const std::string&>());
        return true;
      case Json::value_t::array:
        return write_array(json);
      case Json::value_t::object:
        return write_object(json);
      default:
        packer_.pack_nil();
        return true;
    }
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  // msgpack-cxx would pack 1.0 as the integer 1, which is another value to a typed receiver.
  void write_double(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    std::array<char, 9> bytes{'\xcb'};
    for (std::size_t i = 0; i < 8; ++i)
      bytes.at(i + 1) = static_cast<char>(bits >> (8 * (7 - i)) & 0xff);
    out_.write(bytes.data(), bytes.size());
  }

  bool write_array(const Json& json) {
    packer_.pack_array(static_cast<std::uint32_t>(json.size()));
    return std::all_of(json.begin(), json.end(), [&](const Json& one) { return write(one); });
  }

  bool write_object(const Json& json) {
    if (json.size() == 1 && json.begin().key().starts_with('$')) {
      const std::string& form = json.begin().key();
      if (form == "$bin") return write_bytes(form, json.begin().value());
      if (form == "$str") return write_bytes(form, json.begin().value());
      if (form == "$ext") return write_ext(json.begin().value());
      if (form == "$float") return write_float(json.begin().value());
      if (form == "$map") return write_pairs(json.begin().value());
    }
    packer_.pack_map(static_cast<std::uint32_t>(json.size()));
    for (const auto& [key, value] : json.items()) {
      packer_.pack(key);
      if (!write(value)) return false;
    }
    return true;
  }

  bool write_bytes(const std::string& form, const Json& value) {
    const auto bytes = from_hex(value);
    if (!bytes) return refuse(form + " takes a string of hexadecimal digits, two per byte");
    const auto size = static_cast<std::uint32_t>(bytes->size());
    if (form == "$bin") {
      packer_.pack_bin(size).pack_bin_body(bytes->data(), size);
    } else {
      packer_.pack_str(size).pack_str_body(bytes->data(), size);
    }
    return true;
  }

  bool write_ext(const Json& value) {
    const bool shaped = value.is_array() && value.size() == 2 && value[0].is_number_integer();
    const auto bytes = shaped ? from_hex(value[1]) : std::nullopt;
    const auto type = shaped ? value[0].get<std::int64_t>() : 0;
    if (!bytes || type < -128 || type > 127)
      return refuse("$ext takes [type, \"hex\"] with a type of -128..127");
    packer_.pack_ext(bytes->size(), static_cast<std::int8_t>(type));
    packer_.pack_ext_body(bytes->data(), static_cast<std::uint32_t>(bytes->size()));
    return true;
  }

  bool write_float(const Json& value) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (value == "nan") {
      write_double(std::numeric_limits<double>::quiet_NaN());
    } else if (value == "inf" || value == "-inf") {
      write_double(value == "inf" ? kInfinity : -kInfinity);
    } else {
      return refuse("$float takes \"nan\", \"inf\" or \"-inf\"");
    }
    return true;
  }

  bool write_pairs(const Json& value) {
    const auto is_pair = [](const Json& one) { return one.is_array() && one.size() == 2; };
    if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_pair))
      return refuse("$map takes a list of [key, value]");
    packer_.pack_map(static_cast<std::uint32_t>(value.size()));
    return std::all_of(value.begin(), value.end(),
                       [&](const Json& pair) { return write(pair[0]) && write(pair[1]); });
  }

  bool refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  msgpack::sbuffer& out_;
  Packer packer_;
  std::string problem_;
};

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

Json read(const msgpack::object& object);

Json read_string(const msgpack::object_str& str) {
  std::string text(str.ptr, str.size);
  if (is_utf8(text)) return text;
  return {{"$str", to_hex(str.ptr, str.size)}};
}

Json read_float(double value) {
  if (std::isnan(value)) return {{"$float", "nan"}};
  if (std::isinf(value)) return {{"$float", value > 0 ? "inf" : "-inf"}};
  return value;
}

bool is_form(const std::string& key) {
  return key == "$bin" || key == "$str" || key == "$ext" || key == "$float" || key == "$map";
}

Json read_map(const msgpack::object_map& map) {
  Json object = Json::object();
  Json pairs = Json::array();
  bool plain = true;
  for (std::uint32_t i = 0; i < map.size; ++i) {
    const Json key = read(map.ptr[i].key);
    plain = plain && key.is_string() && !object.contains(key.get<std::string>());
    const Json value = read(map.ptr[i].val);
    if (plain) object[key.get<std::string>()] = value;
    pairs.push_back(Json::array({key, value}));
  }
  if (plain && map.size == 1 && is_form(object.begin().key())) plain = false;
  return plain ? object : Json{{"$map", pairs}};
}

Json read(const msgpack::object& object) {
  switch (object.type) {
    case msgpack::type::BOOLEAN:
      return object.via.boolean;
    case msgpack::type::POSITIVE_INTEGER:
      return object.via.u64;
    case msgpack::type::NEGATIVE_INTEGER:
      return object.via.i64;
    case msgpack::type::FLOAT32:
    case msgpack::type::FLOAT64:
      return read_float(object.via.f64);
    case msgpack::type::STR:
      return read_string(object.via.str);
    case msgpack::type::BIN:
      return {{"$bin", to_hex(object.via.bin.ptr, object.via.bin.size)}};
    case msgpack::type::EXT:
      return {{"$ext", Json::array({object.via.ext.type(),
                                    to_hex(object.via.ext.data(), object.via.ext.size)})}};
    case msgpack::type::ARRAY: {
      Json array = Json::array();
      for (std::uint32_t i = 0; i < object.via.array.size; ++i)
        array.push_back(read(object.via.array.ptr[i]));
      return array;
    }
    case msgpack::type::MAP:
      return read_map(object.via.map);
    default:
      return nullptr;
  }
}

}  // namespace

Result<std::string> json_to_msgpack(std::string_view text) {
  Builder builder;
  if (!Json::sax_parse(text, &builder)) return Status(Errc::invalid_argument, builder.problem());
  msgpack::sbuffer buffer;
  Writer writer(buffer);
  if (!writer.write(builder.take())) return Status(Errc::invalid_argument, writer.problem());
  return std::string(buffer.data(), buffer.size());
}

Result<Json> msgpack_to_json(std::string_view payload) {
  if (payload.empty()) return Json(nullptr);
  try {
    const msgpack::unpack_limit limit(1U << 20, 1U << 20, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                      kMaxDepth);
    std::size_t end = 0;
    const msgpack::object_handle handle =
        msgpack::unpack(payload.data(), payload.size(), end, nullptr, nullptr, limit);
    if (end != payload.size())
      return Status(Errc::decode_failed, std::to_string(payload.size() - end) +
                                             " bytes follow the msgpack value of the reply");
    return read(handle.get());
  } catch (const std::exception& error) {
    return Status(Errc::decode_failed, std::string("the reply is not msgpack: ") + error.what());
  }
}

}  // namespace shardbusctl
