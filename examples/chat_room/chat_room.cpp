// Two nodes and a question that is passed on. A `room` runs on the first node, its `user`s on the
// second. The room does not wait for the user: it hands the asker's reply port over, and the user
// answers the asker directly, across the cluster.
#include <iostream>
#include <set>
#include <shardbus/shardbus.hpp>
#include <string>
#include <vector>

using shardbus::Context;
using shardbus::ReplyPort;

struct Join {
  std::string user;
  MSGPACK_DEFINE_MAP(user);
};
struct Question {
  std::string to, text;
  MSGPACK_DEFINE_MAP(to, text);
};
// What the room tells a user: the question, and whom to answer.
struct Passed {
  std::string room, text;
  ReplyPort<std::string> asker;
  MSGPACK_DEFINE_MAP(room, text, asker);
};

class Room {
 public:
  // The reply is how many are here now.
  std::size_t handle(const Join& join) {
    members_.insert(join.user);
    return members_.size();
  }

  void handle(const Question& question, Context& context, ReplyPort<std::string> asker) {
    if (!members_.contains(question.to)) {
      (void)asker.answer("nobody here is called " + question.to);
      return;
    }
    const std::string room(context.id());
    const auto told = context.entity("user", question.to)
                          .tell("passed", Passed{room, question.text, std::move(asker)});
    if (!told) std::cerr << "lost a question: " << told.message() << '\n';
  }

 private:
  std::set<std::string> members_;
};

class User {
 public:
  explicit User(const Context& context) : name_(context.id()) {}

  void handle(const Passed& passed, Context& context) {
    (void)passed.asker.answer(name_ + " on " + std::string(context.node()) + ", asked in " +
                              passed.room + ": " + (passed.text == "ping" ? "pong" : "no idea"));
  }

 private:
  std::string name_;
};

namespace {

shardbus::Node start(const std::string& name, std::vector<std::string> seeds) {
  return shardbus::Node::start({.cluster = "chat",
                                .name = name,
                                .listen = "tcp://127.0.0.1:0",
                                .seeds = std::move(seeds)})
      .value();
}

void check(const shardbus::Status& status) {
  if (!status) throw shardbus::ResultError(status);
}

void run() {
  const std::chrono::seconds patience(10);
  auto rooms = start("rooms", {});
  auto users = start("users", {rooms.listen_address()});
  check(rooms.host<Room>("room", shardbus::on<Join>("join"), shardbus::on<Question>("question")));
  check(users.host<User>("user", shardbus::on<Passed>("passed")));
  check(rooms.wait_ready(patience, 2));
  check(users.wait_ready(patience, 2));

  // Any node reaches any entity.
  const auto lobby = users.entity("room", "lobby");
  std::cout << lobby.ask<std::size_t>("join", Join{"ada"}).value() << " in the lobby\n";
  std::cout << lobby.ask<std::string>("question", Question{"ada", "ping"}).value() << '\n';
  std::cout << lobby.ask<std::string>("question", Question{"bob", "ping"}).value() << '\n';
  check(users.leave(patience));
  check(rooms.leave(patience));
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const shardbus::ResultError& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
