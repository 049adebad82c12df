#include "daemon/builtin_types.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shardbusd {
namespace {

using shardbus::Delivery;
using shardbus::Errc;
using shardbus::Status;

// A reply to a tell goes nowhere, which is what its sender asked for.
void answer(const Delivery& delivery, std::string_view payload) {
  if (delivery.port.valid()) (void)delivery.port.state()->answer({Errc::ok, {}, payload});
}

// Answers every method with the payload, byte for byte.
class Echo final : public shardbus::Entity {
 public:
  void handle(Delivery& delivery) override { answer(delivery, delivery.payload); }
};

std::string_view type_name(const msgpack::object& value) {
  switch (value.type) {
    case msgpack::type::NIL:
      return "nil";
    case msgpack::type::BOOLEAN:
      return "a boolean";
    case msgpack::type::POSITIVE_INTEGER:
    case msgpack::type::NEGATIVE_INTEGER:
      return "an integer";
    case msgpack::type::FLOAT32:
    case msgpack::type::FLOAT64:
      return "a float";
    case msgpack::type::STR:
      return "a string";
    case msgpack::type::BIN:
      return "binary";
    case msgpack::type::ARRAY:
      return "an array";
    case msgpack::type::MAP:
      return "a map";
    default:
      return "an extension";
  }
}

const msgpack::object* find_key(const msgpack::object& map, std::string_view key) {
  for (std::uint32_t i = 0; i < map.via.map.size; ++i) {
    const msgpack::object_kv& entry = map.via.map.ptr[i];
    if (entry.key.type == msgpack::type::STR &&
        std::string_view(entry.key.via.str.ptr, entry.key.via.str.size) == key)
      return &entry.val;
  }
  return nullptr;
}

// By hand, as MSGPACK_DEFINE_MAP takes a map without the key for one with a zero, and names neither
// the key nor the type when the value does not fit.
struct Add {
  std::uint64_t amount = 0;

  void msgpack_unpack(const msgpack::object& payload) {
    if (payload.type != msgpack::type::MAP) wrong("the payload is ", type_name(payload));
    const msgpack::object* value = find_key(payload, "amount");
    if (value == nullptr) wrong("the key \"amount\" is missing", "");
    if (value->type == msgpack::type::NEGATIVE_INTEGER) wrong("\"amount\" is negative", "");
    if (value->type != msgpack::type::POSITIVE_INTEGER) wrong("\"amount\" is ", type_name(*value));
    amount = value->via.u64;
  }

 private:
  // Becomes the text of decode_failed.
  [[noreturn]] static void wrong(std::string_view what, std::string_view type) {
    throw std::invalid_argument(std::string(what) + std::string(type) +
                                "; add takes {\"amount\": n} with an integer n from 0 to 2^64-1");
  }
};
struct Get {};
struct Reset {};

// Wraps around at 2^64, as unsigned numbers do.
class Counter {
 public:
  std::uint64_t handle(const Add& add) { return total_ += add.amount; }
  std::uint64_t handle(const Get&) { return total_; }
  void handle(const Reset&) { total_ = 0; }
  [[nodiscard]] std::uint64_t save() const { return total_; }
  void load(std::uint64_t total) { total_ = total; }

 private:
  std::uint64_t total_ = 0;
};

// Holds one value; the entity's id is its key. The value stays as bytes, so any msgpack comes back
// as it was written.
class KeyValue final : public shardbus::Entity {
 public:
  void handle(Delivery& delivery) override {
    if (delivery.method == "set") {
      value_ = delivery.payload.empty() ? shardbus::pack_nothing() : delivery.payload;
      is_set_ = true;
      answer(delivery, shardbus::pack_nothing());
    } else if (delivery.method == "get") {
      answer(delivery, is_set_ ? std::string_view(value_) : shardbus::pack_nothing());
    } else if (delivery.method == "delete") {
      const bool was_set = std::exchange(is_set_, false);
      value_.clear();
      answer(delivery, shardbus::pack(was_set));
    } else {
      (void)delivery.port.fail(Errc::no_such_method, delivery.method);
    }
  }
  bool save(std::string& state) override {
    if (is_set_) state = value_;
    return is_set_;
  }
  Status load(std::string_view state) override {
    value_ = state;
    is_set_ = true;
    return {};
  }

 private:
  std::string value_;
  bool is_set_ = false;
};

template <class T>
shardbus::EntityType raw_type(std::string name) {
  return {std::move(name), {}, [](const shardbus::Context&) -> std::unique_ptr<shardbus::Entity> {
            return std::make_unique<T>();
          }};
}

}  // namespace

shardbus::EntityType echo_type() {
  return raw_type<Echo>("echo");
}

shardbus::EntityType counter_type() {
  return shardbus::entity_type<Counter>("counter", {}, shardbus::on<Add>("add"),
                                        shardbus::on<Get>("get"), shardbus::on<Reset>("reset"));
}

shardbus::EntityType kv_type() {
  return raw_type<KeyValue>("kv");
}

Status host_builtin_types(shardbus::Node& node, const shardbus::TypeOptions& options) {
  for (shardbus::EntityType& type : std::vector{echo_type(), counter_type(), kv_type()}) {
    type.options = options;
    if (Status hosted = node.host(std::move(type)); !hosted) return hosted;
  }
  return {};
}

}  // namespace shardbusd
