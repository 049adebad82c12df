// How a C++ type becomes an entity: `on<Message>("method")` binds a `handle` overload.
//
// A handler is `handle(const M&)`, optionally followed by `Context&`, and by a `ReplyPort<R>` to
// answer later. A returned value answers the ask; void answers an ask with nil. An entity with
// `save`/`load` (any type that msgpack packs) keeps its state through planned moves.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardbus/codec.hpp"
#include "shardbus/entity_ref.hpp"
#include "shardbus/reply_port.hpp"

namespace shardbus {

// What a handler may see and use. Valid during the call only, except `entity()` results.
//
// Threads: the thread of the handler.
class SHARDBUS_EXPORT Context {
 public:
  Context(std::shared_ptr<Messenger> via, std::string_view type, std::string_view id,
          std::string_view node)
      : via_(std::move(via)), type_(type), id_(id), node_(node) {}
  [[nodiscard]] std::string_view type() const { return type_; }
  [[nodiscard]] std::string_view id() const { return id_; }
  // Name of the node that runs the entity.
  [[nodiscard]] std::string_view node() const { return node_; }
  // Who sent the message: the key of a node, or a client's sender number, as text. Valid until the
  // next call on this thread.
  [[nodiscard]] std::string_view sender() const;
  // Address of another entity. Asks from a handler need the callback form.
  [[nodiscard]] EntityRef entity(std::string type, std::string id) const {
    return {via_, std::move(type), std::move(id)};
  }
  [[nodiscard]] const std::shared_ptr<Messenger>& messenger() const { return via_; }
  void set_sender(std::uint64_t sender) { sender_ = sender; }

 private:
  std::shared_ptr<Messenger> via_;
  std::string_view type_, id_, node_;
  std::uint64_t sender_ = 0;
};

// One message for an entity, as bytes.
struct Delivery {
  std::string_view method;
  std::string_view payload;
  AnyReplyPort port;  // invalid for a tell
  Context* context = nullptr;
};

// A running entity, type erased. Own implementations serve entities that are not plain C++ types.
//
// Threads: one call at a time. Errors: what `handle` throws becomes `handler_failed`; the entity
// goes on with what the handler did to it.
class SHARDBUS_EXPORT Entity {
 public:
  virtual ~Entity() = default;
  // Handles one message; answers through `delivery.port`.
  virtual void handle(Delivery& delivery) = 0;
  // State for a planned move, or false if there is none to take along.
  virtual bool save(std::string& state);
  virtual Status load(std::string_view state);
};

// What a node does with shards of a type that it owns when it has no majority behind it any more.
enum class Consistency : std::uint8_t {
  available,  // it goes on as the downing policy says; after a crash and a partition together two
              // nodes may own a shard until they hear each other again
  strict,     // it starts no handler, and lets no answer out; messages wait, at most until their
              // deadline. Not for workers.
};

// Which node gets which shard of a type.
enum class Placement : std::uint8_t {
  least_shards,  // as equal numbers as can be, by few moves
  rendezvous,    // by hash, in proportion to capacity: the same node again after a restart
  weighted,      // as least_shards, in proportion to capacity
  ring,          // consistent hashing, in proportion to capacity
};

// Settings of an entity type; the same on every node that hosts it.
struct TypeOptions {
  std::uint32_t shard_count = 256;        // 1..65536; fixed for the life of the cluster
  std::uint32_t mailbox_messages = 1000;  // per entity, 1..1'000'000; above: mailbox_full
  Consistency consistency = Consistency::available;
  Placement placement = Placement::least_shards;
  // Only nodes with this role run it; others that host it just route. Empty: all. 0..64 bytes.
  std::string role{};
  bool spread_zones = false;  // as equally over the nodes' zones as their capacity allows
};

struct EntityType {
  std::string name;  // 1..64 bytes; "$..." is reserved
  TypeOptions options;
  // Makes an entity on its first message. What it throws is `handler_failed` for that message.
  std::function<std::unique_ptr<Entity>(const Context&)> create;
};

// One bound method of T; made by `on<M>(name)`.
template <class M>
struct Method {
  std::string name;
};

// Binds messages named `name` to the overload of `handle` that takes an M.
template <class M>
Method<M> on(std::string name) {
  return {std::move(name)};
}

namespace detail {

template <class T, class M>
void call_handler(T& entity, const M& message, Delivery& delivery) {
  Context& context = *delivery.context;
  auto answer_with = [&](auto&& call) {
    using R = decltype(call());
    if constexpr (std::is_void_v<R>) {
      call();
      if (delivery.port.valid())
        (void)delivery.port.state()->answer({Errc::ok, {}, pack_nothing()});
    } else {
      const auto& value = call();
      if (delivery.port.valid()) (void)delivery.port.state()->answer({Errc::ok, {}, pack(value)});
    }
  };
  if constexpr (requires { entity.handle(message, context, delivery.port); }) {
    entity.handle(message, context, std::exchange(delivery.port, {}));
  } else if constexpr (requires { entity.handle(message, delivery.port); }) {
    entity.handle(message, std::exchange(delivery.port, {}));
  } else if constexpr (requires { entity.handle(message, context); }) {
    answer_with([&]() -> decltype(auto) { return entity.handle(message, context); });
  } else {
    answer_with([&]() -> decltype(auto) { return entity.handle(message); });
  }
}

template <class T>
struct Dispatch {
  std::string name;
  void (*call)(T&, Delivery&);
};

template <class T, class M>
void decode_and_call(T& entity, Delivery& delivery) {
  const Result<M> message = unpack<M>(delivery.payload);
  if (!message) {
    (void)delivery.port.fail(Errc::decode_failed, message.error().text());
    return;
  }
  call_handler(entity, *message, delivery);
}

template <class T>
class TypedEntity final : public Entity {
 public:
  TypedEntity(std::shared_ptr<const std::vector<Dispatch<T>>> methods, const Context& context)
      : methods_(std::move(methods)), entity_(make(context)) {}

  void handle(Delivery& delivery) override {
    for (const Dispatch<T>& method : *methods_) {
      if (method.name == delivery.method) return method.call(entity_, delivery);
    }
    (void)delivery.port.fail(Errc::no_such_method, delivery.method);
  }
  bool save(std::string& state) override {
    if constexpr (requires { entity_.save(); }) {
      const auto& value = entity_.save();
      state = std::string(pack(value));
      return true;
    }
    return false;
  }
  Status load(std::string_view state) override {
    if constexpr (requires { entity_.save(); }) {
      auto value = unpack<std::decay_t<decltype(entity_.save())>>(state);
      if (!value) return value.error();
      entity_.load(std::move(*value));
    }
    return {};
  }

 private:
  static T make(const Context& context) {
    if constexpr (std::is_constructible_v<T, const Context&>) {
      return T(context);
    } else {
      return T();
    }
  }
  std::shared_ptr<const std::vector<Dispatch<T>>> methods_;
  T entity_;
};

}  // namespace detail

// Describes entity type `name` run by T with the given methods. T is default constructible, or
// constructible from `const Context&`.
template <class T, class... M>
EntityType entity_type(std::string name, TypeOptions options, Method<M>... methods) {
  auto table = std::make_shared<const std::vector<detail::Dispatch<T>>>(
      std::vector<detail::Dispatch<T>>{{methods.name, &detail::decode_and_call<T, M>}...});
  return {std::move(name), std::move(options),
          [table](const Context& context) -> std::unique_ptr<Entity> {
            return std::make_unique<detail::TypedEntity<T>>(table, context);
          }};
}

}  // namespace shardbus
