// Packs the reply to an administrative ask.
#pragma once

#include <cstdint>
#include <msgpack.hpp>
#include <string>
#include <string_view>

namespace shardbus::runtime {

class AdminWriter {
 public:
  AdminWriter() : packer_(buffer_) {}
  void map(std::size_t entries) { packer_.pack_map(static_cast<std::uint32_t>(entries)); }
  void array(std::size_t items) { packer_.pack_array(static_cast<std::uint32_t>(items)); }
  template <class T>
  void value(const T& v) {
    packer_.pack(v);
  }
  void value(std::string_view v) {
    packer_.pack_str(static_cast<std::uint32_t>(v.size()));
    packer_.pack_str_body(v.data(), static_cast<std::uint32_t>(v.size()));
  }
  void bytes(std::string_view v) {
    packer_.pack_bin(static_cast<std::uint32_t>(v.size()));
    packer_.pack_bin_body(v.data(), static_cast<std::uint32_t>(v.size()));
  }
  void nil() { packer_.pack_nil(); }
  template <class T>
  void entry(std::string_view key, const T& v) {
    value(key);
    value(v);
  }
  void entry(std::string_view key, std::string_view v) {
    value(key);
    value(v);
  }
  void entry(std::string_view key, const char* v) { entry(key, std::string_view(v)); }
  void entry(std::string_view key, const std::string& v) { entry(key, std::string_view(v)); }
  [[nodiscard]] std::string_view result() const { return {buffer_.data(), buffer_.size()}; }

 private:
  msgpack::sbuffer buffer_;
  msgpack::packer<msgpack::sbuffer> packer_;
};

}  // namespace shardbus::runtime
