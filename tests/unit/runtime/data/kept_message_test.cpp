#include "runtime/data/kept_message.hpp"

#include <gtest/gtest.h>

namespace shardbus::runtime {
namespace {

wire::Message ask(std::string_view id, std::string_view payload) {
  wire::Message message;
  message.kind = wire::Kind::ask;
  message.correlation = {{}, NodeKey{7}, 42};
  message.type = "cart";
  message.id = id;
  message.method = "add";
  message.generation = {Term{3}, NodeKey{9}, 4};
  message.time_left_ms = 1500;
  message.hops = 1;
  message.headers = "\x81\xa1k\x01";
  message.payload = payload;
  return message;
}

std::string bytes_of(const wire::Message& message) {
  std::string out;
  wire::encode(out, message);
  return out;
}

// Short ones are inside the object, and move along with it.
TEST(KeptMessageTest, IsWhatItWasAlsoAfterAMove) {
  for (const std::size_t size : {0U, 3U, 5000U}) {
    const std::string payload(size, 'p');
    const std::string before = bytes_of(ask("a", payload));
    KeptMessage kept(5, ask("a", payload), Time{} + std::chrono::seconds(2));
    const KeptMessage moved = std::move(kept);
    EXPECT_EQ(bytes_of(moved.view("cart")), before);
    EXPECT_EQ(moved.asker(), NodeKey{7});
    EXPECT_EQ(moved.slot(), 42U);
    EXPECT_EQ(moved.sender(), 5U);
  }
}

TEST(KeptMessageTest, MovesOnAsItCame) {
  const KeptMessage kept(5, ask("id", "payload"), Time{} + std::chrono::seconds(2));
  const core::Parked parked = kept.parked("cart");
  EXPECT_EQ(parked.envelope, bytes_of(ask("id", "payload")));
  EXPECT_EQ(parked.sender, 5U);
  EXPECT_EQ(parked.deadline, Time{} + std::chrono::seconds(2));
  EXPECT_EQ(parked.asker, NodeKey{7});
  EXPECT_EQ(parked.slot, 42U);
  EXPECT_EQ(parked.generation, (Generation{Term{3}, NodeKey{9}, 4}));
  EXPECT_EQ(bytes_of(KeptMessage(parked).view("cart")), parked.envelope);
}

// Its asker's correlation is not a port where a client sent it.
TEST(KeptMessageTest, KeepsAForeignCorrelation) {
  wire::Message message = ask("id", "payload");
  message.correlation = {"\xa3xyz", kNoNode, 0};
  EXPECT_EQ(bytes_of(KeptMessage(5, message, kNever).view("cart")), bytes_of(message));
}

}  // namespace
}  // namespace shardbus::runtime
