// Cost of one envelope in and out of the codec.
#include <benchmark/benchmark.h>

#include "vectors/sample_values.hpp"
#include "wire/codec.hpp"

namespace shardbus::wire {
namespace {

Message routed_ask() {
  Message message = test::sample_ask();
  message.correlation = {{}, test::node_a().key, 4711};
  message.generation = test::sample_generation();
  return message;
}

Message tell_of(std::string_view payload) {
  Message message = test::sample_tell();
  message.payload = payload;
  return message;
}

Reply short_reply() {
  return {{"\x07", {}, 0}, 0, {}, "\x03"};
}

template <class T>
void encode_into_a_batch(benchmark::State& state, const T& value) {
  std::string out;
  out.reserve(kFlushBytes + kFrameBytesMax);
  for (auto _ : state) {
    if (out.size() > kFlushBytes) out.clear();
    encode(out, value);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}

template <class T>
void decode_a_batch(benchmark::State& state, const T& value) {
  constexpr int kCount = 100;
  std::string frame;
  for (int i = 0; i < kCount; ++i) encode(frame, value);
  Envelope envelope;
  for (auto _ : state) {
    std::string_view rest = frame;
    while (!rest.empty()) {
      if (next_envelope(rest, envelope) != Errc::ok) state.SkipWithError("refused");
      benchmark::DoNotOptimize(envelope);
    }
  }
  state.SetItemsProcessed(state.iterations() * kCount);
}

void encode_tell(benchmark::State& state) {
  encode_into_a_batch(state, test::sample_tell());
}
void encode_ask(benchmark::State& state) {
  encode_into_a_batch(state, test::sample_ask());
}
void encode_routed_ask(benchmark::State& state) {
  encode_into_a_batch(state, routed_ask());
}
void encode_reply(benchmark::State& state) {
  encode_into_a_batch(state, short_reply());
}
void encode_tell_4k(benchmark::State& state) {
  const std::string payload(4096, 'x');
  encode_into_a_batch(state, tell_of(payload));
}
void decode_tell(benchmark::State& state) {
  decode_a_batch(state, test::sample_tell());
}
void decode_ask(benchmark::State& state) {
  decode_a_batch(state, test::sample_ask());
}
void decode_routed_ask(benchmark::State& state) {
  decode_a_batch(state, routed_ask());
}
void decode_reply(benchmark::State& state) {
  decode_a_batch(state, short_reply());
}

BENCHMARK(encode_tell);
BENCHMARK(encode_ask);
BENCHMARK(encode_routed_ask);
BENCHMARK(encode_reply);
BENCHMARK(encode_tell_4k);
BENCHMARK(decode_tell);
BENCHMARK(decode_ask);
BENCHMARK(decode_routed_ask);
BENCHMARK(decode_reply);

}  // namespace
}  // namespace shardbus::wire
