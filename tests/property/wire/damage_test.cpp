// Damaged envelopes: a decoder answers with an error or with a value, and with nothing worse.
#include <gtest/gtest.h>

#include "property/wire/generators.hpp"
#include "support/wire_recode.hpp"
#include "vectors/samples.hpp"

namespace shardbus::test {
namespace {

// Copied to the heap at its exact size, so that the sanitizer sees a read behind the end.
Errc decode_exactly(std::string_view bytes, std::string& again) {
  const std::vector<char> exact(bytes.begin(), bytes.end());
  std::string_view rest(exact.data(), exact.size());
  return recode(rest, again);
}

// What was accepted has to be stable: its canonical form decodes to itself.
void accepts_only_what_it_can_say_again(std::string_view bytes) {
  std::string again;
  if (decode_exactly(bytes, again) != Errc::ok) return;
  std::string twice;
  RC_ASSERT(decode_exactly(again, twice) == Errc::ok);
  RC_ASSERT(twice == again);
}

TEST(Damage, EveryPrefixIsRefused) {
  for (const ValidSample& sample : valid_samples()) {
    const std::string_view whole = sample.bytes;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      std::string again;
      EXPECT_EQ(decode_exactly(whole.substr(0, size), again), Errc::malformed)
          << sample.name << " cut after " << size;
    }
  }
}

TEST(Damage, NoChangedByteDoesHarm) {
  for (const ValidSample& sample : valid_samples()) {
    for (std::size_t at = 0; at < std::min<std::size_t>(sample.bytes.size(), 200); ++at) {
      for (const unsigned value : {0x00U, 0x7fU, 0x80U, 0x90U, 0xa0U, 0xc0U, 0xc1U, 0xc4U, 0xc6U,
                                   0xc9U, 0xcbU, 0xcfU, 0xd3U, 0xdbU, 0xddU, 0xdfU, 0xffU}) {
        std::string bytes = sample.bytes;
        bytes[at] = static_cast<char>(value);
        std::string again;
        (void)decode_exactly(bytes, again);
      }
    }
  }
}

RC_GTEST_PROP(Damage, FlippedBits, ()) {
  static const std::vector<ValidSample> samples = valid_samples();
  std::string bytes = samples[*rc::gen::inRange<std::size_t>(0, samples.size())].bytes;
  const auto flips = *rc::gen::inRange(1, 5);
  for (int i = 0; i < flips; ++i) {
    const auto bit = *rc::gen::inRange<std::size_t>(0, bytes.size() * 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  }
  accepts_only_what_it_can_say_again(bytes);
}

RC_GTEST_PROP(Damage, Noise, ()) {
  accepts_only_what_it_can_say_again(any_bytes(200));
}

}  // namespace
}  // namespace shardbus::test
