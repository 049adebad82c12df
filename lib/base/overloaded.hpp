// A visitor made of lambdas: std::visit(Overloaded{[](const A&) {}, [](const B&) {}}, variant).
#pragma once

namespace shardbus {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace shardbus
