// A callable that is moved, called and destroyed, never copied (std::move_only_function is C++23).
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace shardbus {

template <class Signature>
class UniqueFunction;

// Shape: small callables (up to 48 bytes, nothrow movable) live inside, others on the heap.
// Calling an empty one is a programmer's error.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() noexcept = default;
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
           // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint excludes itself
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>) UniqueFunction(F&& function) {
    using Target = std::decay_t<F>;
    if constexpr (fits<Target>()) {
      ::new (static_cast<void*>(storage_)) Target(std::forward<F>(function));
      operations_ = &kInline<Target>;
    } else {
      ::new (static_cast<void*>(storage_)) Target*(new Target(std::forward<F>(function)));
      operations_ = &kHeap<Target>;
    }
  }
  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  UniqueFunction(const UniqueFunction&) = delete;
  UniqueFunction& operator=(const UniqueFunction&) = delete;
  ~UniqueFunction() { reset(); }

  explicit operator bool() const noexcept { return operations_ != nullptr; }
  R operator()(Args... args) { return operations_->call(storage_, std::forward<Args>(args)...); }

 private:
  static constexpr std::size_t kInlineBytes = 48;
  struct Operations {
    R (*call)(void*, Args&&...);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <class Target>
  static constexpr bool fits() {
    return sizeof(Target) <= kInlineBytes && alignof(Target) <= alignof(std::max_align_t) &&
           std::is_nothrow_move_constructible_v<Target>;
  }
  template <class Target>
  static constexpr Operations kInline{
      [](void* at, Args&&... args) -> R {
        return (*static_cast<Target*>(at))(std::forward<Args>(args)...);
      },
      [](void* from, void* to) noexcept {
        ::new (to) Target(std::move(*static_cast<Target*>(from)));
        static_cast<Target*>(from)->~Target();
      },
      [](void* at) noexcept { static_cast<Target*>(at)->~Target(); }};
  template <class Target>
  static constexpr Operations kHeap{
      [](void* at, Args&&... args) -> R {
        return (**static_cast<Target**>(at))(std::forward<Args>(args)...);
      },
      [](void* from, void* to) noexcept { ::new (to) Target*(*static_cast<Target**>(from)); },
      [](void* at) noexcept { delete *static_cast<Target**>(at); }};

  void take(UniqueFunction& other) noexcept {
    operations_ = other.operations_;
    if (operations_ != nullptr) operations_->move(other.storage_, storage_);
    other.operations_ = nullptr;
  }
  void reset() noexcept {
    if (operations_ != nullptr) operations_->destroy(storage_);
    operations_ = nullptr;
  }

  alignas(std::max_align_t) unsigned char storage_[kInlineBytes];
  const Operations* operations_ = nullptr;
};

}  // namespace shardbus
