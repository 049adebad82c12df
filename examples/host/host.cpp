// A service that joins a cluster and hosts one entity type, `account`: what a C++ program does that
// lives beside brokers and workers in other languages. bin/quickstart runs it.
//
//   host --seed tcp://127.0.0.1:7400 [--seed ...] [--name NAME] [--cluster NAME]
//
// Prints "ready ..." once it is a member, and leaves in order on SIGTERM or SIGINT.
#include <csignal>
#include <iostream>
#include <shardbus/shardbus.hpp>
#include <stdexcept>
#include <string>
#include <vector>

struct Deposit {
  std::uint64_t amount = 0;
  MSGPACK_DEFINE_MAP(amount);
};
struct Withdraw {
  std::uint64_t amount = 0;
  MSGPACK_DEFINE_MAP(amount);
};
struct Balance {};

class Account {
 public:
  // Both answer the new balance.
  std::uint64_t handle(const Deposit& deposit) { return balance_ += deposit.amount; }
  void handle(const Withdraw& withdraw, shardbus::ReplyPort<std::uint64_t> asker) {
    // A refusal is an answer. An exception would be one, too, and would say that the handler is
    // broken.
    if (withdraw.amount > balance_) {
      (void)asker.fail(shardbus::Errc::handler_failed, "the balance is too low");
    } else {
      (void)asker.answer(balance_ -= withdraw.amount);
    }
  }
  std::uint64_t handle(const Balance&) { return balance_; }

  // Together these keep the balance when the account moves to another node.
  [[nodiscard]] std::uint64_t save() const { return balance_; }
  void load(std::uint64_t balance) { balance_ = balance; }

 private:
  std::uint64_t balance_ = 0;
};

namespace {

constexpr const char* kUsage = "usage: host --seed tcp://HOST:PORT [--name NAME] [--cluster NAME]";

shardbus::NodeOptions parse(const std::vector<std::string>& words) {
  shardbus::NodeOptions options{.name = "host", .listen = "tcp://127.0.0.1:0"};
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "--seed") {
      options.seeds.push_back(words[i + 1]);
    } else if (words[i] == "--name") {
      options.name = words[i + 1];
    } else if (words[i] == "--cluster") {
      options.cluster = words[i + 1];
    } else {
      throw std::invalid_argument("unknown flag " + words[i]);
    }
  }
  if (options.seeds.empty() || words.size() % 2 != 0) throw std::invalid_argument(kUsage);
  return options;
}

void check(const shardbus::Status& status) {
  if (!status) throw shardbus::ResultError(status);
}

void run(const std::vector<std::string>& words) {
  // Before the node starts its threads, so that the signals come to sigwait() below.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  auto node = shardbus::Node::start(parse(words)).value();
  check(node.host<Account>("account", shardbus::on<Deposit>("deposit"),
                           shardbus::on<Withdraw>("withdraw"), shardbus::on<Balance>("balance")));
  check(node.wait_ready(std::chrono::seconds(30)));
  std::cout << "ready name=" << node.name() << " listen=" << node.listen_address() << std::endl;

  int signal = 0;
  sigwait(&stop, &signal);
  check(node.leave(std::chrono::seconds(10)));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
      std::cout << kUsage << '\n';
      return 0;
    }
    run(words);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "host: " << error.what() << '\n';
    return 1;
  }
}
