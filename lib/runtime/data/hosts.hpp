// Runs entities: in this process (C++ types) or in attached workers.
//
// An entity handles one message at a time, in the order of its mailbox. Without an executor
// handlers run within the pass; what they send to entities of this node waits until they are done.
#pragma once

#include <tsl/robin_map.h>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_lease.hpp"
#include "core/region/region_types.hpp"
#include "runtime/data/context.hpp"
#include "runtime/data/dispatch.hpp"
#include "runtime/data/guarded_messenger.hpp"
#include "runtime/data/kept_message.hpp"
#include "shardbus/entity.hpp"
#include "wire/codec.hpp"

namespace shardbus::runtime {

// Runs handlers elsewhere. Work of one lane runs in order, one at a time.
class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `work` on a lane's thread, then `done` within a pass of the data plane.
  virtual void post(std::uint32_t lane, UniqueFunction<void()> work,
                    UniqueFunction<void()> done) = 0;
};

// What a move of a shard would take along. `bytes`: of saved state, from a few of its entities.
struct ShardLoad {
  ShardName shard;
  std::uint64_t entities = 0;
  std::uint64_t bytes = 0;
};

// What a node tells others of it.
HostedType hosted_type(const EntityType& definition);

class Hosts {
 public:
  Hosts(DataContext& context, std::weak_ptr<NodeMessenger> messenger, Executor* executor)
      : context_(context), messenger_(std::move(messenger)), executor_(executor) {}
  ~Hosts();

  // Errors: config_mismatch (the type is known with other settings), exhausted (too many types),
  // invalid_argument (this process hosts it already). A type that this node may not run is only
  // made known, so that messages for it are routed.
  Errc host(EntityType type);
  // What the cluster hosts, as the control plane last heard.
  void set_known_types(std::vector<HostedType> types);
  // What is different where the type is known with other settings; empty: nothing.
  [[nodiscard]] std::string differs(const HostedType& type, const std::string& who) const;
  // Whether this process or a worker here hosts it.
  [[nodiscard]] bool has(const Type& type) const;
  [[nodiscard]] bool strict(Type& type) { return hosting_of(type).placement.strict; }

  // Ends the sessions of all workers that host it.
  void send_away(const Type& type, std::string_view why);
  // Whether anybody hosts it here, or anything of it is left.
  [[nodiscard]] bool uses(const Type& type) const;
  // Its number of shards has changed, while nothing uses it.
  void count_anew(const Type& type);

  // `fresh`: it comes behind what waits here. What a region had parked comes ahead of that.
  void deliver(Type& type, ShardId shard, std::uint64_t sender, const wire::Message& message,
               Time deadline, bool fresh);
  // Starts no handler of the shard any more; calls Dispatch::on_stopped when all are done.
  void stop(Type& type, ShardId shard);
  // Destroys what has left in this pass: whoever takes it must not wait for that. True: there was
  // something, and it may have sent its last words.
  bool end_old_lives();
  // Forgets the shard's entities: it belongs to another owner already (`fenced`), or to nobody, and
  // then their state is lost.
  void drop(Type& type, ShardId shard, bool fenced);
  void restore(Type& type, ShardId shard, core::SavedEntity entity);

  // --- workers, by session number ---
  [[nodiscard]] std::string mismatch(const std::vector<HostedType>& types) const;
  void add_worker(std::uint64_t session, const std::string& label,
                  const std::vector<HostedType>& types);
  void remove_worker(std::uint64_t session, std::vector<std::string> unsent);
  // The worker wants to go: it gets nothing new, and is asked for all of its shards. GOODBYE says
  // that it has given back the last one.
  void give_back(std::uint64_t session);
  // This node leaves: messages without a host wait as long as their shard is here.
  void begin_leave() { leaving_ = true; }
  // Gives back all workers of these types: no other node hosts them, so the workers have to go to
  // one. Repeating it does no harm.
  void send_workers_away(const std::vector<std::string>& types);
  // Counts and logs the states that nobody took.
  void give_up_states();
  void on_worker_credit(std::uint64_t session);
  void on_released(std::uint64_t session, wire::Released released);

  // Runs what handlers of this pass sent to entities here; counts `budget` down. True: anything
  // ran.
  bool run_ready(std::size_t& budget);
  [[nodiscard]] bool has_ready() const { return !ready_.empty(); }
  // Bytes of messages that wait for a worker, or for its credit.
  [[nodiscard]] std::size_t waiting_bytes() const { return waiting_bytes_; }
  [[nodiscard]] std::size_t ready() const { return ready_.size(); }
  // Messages of strict types that wait until this node has a majority.
  [[nodiscard]] std::size_t halted() const { return halted_.size(); }
  void tick();
  // No message is handled any more; what a handler runs in is kept until it has ended.
  void retire();
  // Destroys all entities, once no handler runs any more: their contexts hold the messenger.
  void end_entities();
  [[nodiscard]] Time next_deadline() const;
  [[nodiscard]] std::size_t entities() const;
  // Shards of a type, or of all where it is empty, that have entities in this process.
  [[nodiscard]] std::vector<ShardLoad> loads(const std::string& only);
  // Marks user code (a callback) on the stack: deliveries wait until it has returned.
  class UserCode {
   public:
    explicit UserCode(Hosts& hosts) : hosts_(hosts), before_(hosts.in_user_code_) {
      hosts.in_user_code_ = true;
    }
    ~UserCode() { hosts_.in_user_code_ = before_; }
    UserCode(const UserCode&) = delete;
    UserCode& operator=(const UserCode&) = delete;

   private:
    Hosts& hosts_;
    bool before_;
  };

 private:
  enum class JobState : std::uint8_t { queued, begun, cancelled };
  struct Job {  // one message of an entity that the pool has
    core::Parked message;
    std::atomic<JobState> state{JobState::queued};
    bool failed = false;
    bool too_late = false;   // the right of a strict type was over when its turn came
    bool abandoned = false;  // its cell is kept in abandoned_ until it ends
  };
  struct Cell {
    std::string id;
    std::unique_ptr<Context> context;
    std::unique_ptr<Entity> entity;
    std::list<core::Parked> mailbox;  // costs nothing while it is empty, which it mostly is
    std::weak_ptr<Messenger> via;     // of its handlers
    bool busy = false;
    std::shared_ptr<Job> job;  // while busy
    NodeKey asker;             // of the message that is being handled
    std::uint64_t slot = 0;
  };
  using CellMap = tsl::robin_map<std::string_view, std::unique_ptr<Cell>>;  // key: Cell::id
  struct Cells {
    CellMap map;
    std::uint32_t busy = 0;
    std::uint32_t ready = 0;         // of its messages in ready_ and halted_
    std::uint64_t ready_sender = 0;  // of all of them; 0: of more than one
    bool stopping = false;
    Time stopping_since{};
    std::shared_ptr<GuardedMessenger> guard{};  // of this life; made when it is needed

    void note_ready(std::uint64_t sender) {
      ready_sender = ready == 0 || ready_sender == sender ? sender : 0;
      ++ready;
    }
  };
  struct Waiting {  // for a host, or for a worker's credit
    ShardId shard;
    core::Parked message;
    Time since{};
    ByteLease lease{};
  };
  struct Hosting {  // one entity type
    Type* type = nullptr;
    bool local = false;
    PlacementSettings placement;  // meaningful while anybody here hosts it
    EntityType definition;
    std::vector<Cells> cells;
    std::vector<std::uint64_t> workers;
    std::vector<std::uint64_t> worker_of;  // per shard; 0: none yet
    std::deque<Waiting> orphans;           // no host at the moment
    std::vector<std::pair<ShardId, core::SavedEntity>> orphan_states;
    std::set<std::uint32_t> lost_shards;  // their states were lost, and nobody has been told yet
    std::size_t lost_states = 0;
  };
  // A shard that a worker was asked to give back.
  struct Releasing {
    // What becomes of the states: they go along with the shard; its life is over, and nobody waits
    // for them; the shard stays on this node, and they wait for its next host; or it did not stay
    // so long, and they are lost.
    enum class Then : std::uint8_t { stream, nothing, stay, lose };
    [[nodiscard]] bool over() const { return then == Then::nothing || then == Then::lose; }
    Time since{};
    Then then = Then::stream;
    std::vector<core::SavedEntity> states{};  // of the parts that came so far
    std::size_t state_bytes = 0;              // with their ids
    std::deque<Waiting> waiting{};            // what the worker does not get any more
    std::size_t unbegun = 0;                  // the first of these: it had them, and gave them back
  };
  struct Worker {
    std::string label;
    bool parting = false;  // gives everything back; until it has our GOODBYE
    std::vector<std::uint32_t> types;
    std::deque<std::pair<std::uint32_t, Waiting>> waiting;  // type, message: for credit
    std::map<std::pair<std::uint32_t, std::uint32_t>, Releasing> releasing;
  };
  struct Ready {
    std::uint32_t type = 0;
    ShardId shard;
    KeptMessage message;
    Time until = kNever;  // while it is halted
  };
  [[nodiscard]] bool waits_behind(const Cells& cells, std::uint64_t sender) const;
  // hosts_strict.cpp
  [[nodiscard]] bool may_start(const Hosting& hosting) const {
    return !hosting.placement.strict || context_.strict_right->holds();
  }
  [[nodiscard]] std::shared_ptr<Messenger> messenger_of(const Hosting& hosting, Cells& cells);
  static void end_guard(Cells& cells);
  static bool take_back(Cell& cell);
  void job_done(Hosting& hosting, ShardId shard, Cell& cell, Job& job);
  void take_ready(const Hosting& hosting, ShardId shard, std::vector<core::Parked>& unstarted);
  void halt(Hosting& hosting, ShardId shard, Cell& cell);
  void begin(Hosting& hosting, const Ready& next);
  void limit_wait(Ready& ready);
  void resume();
  void expire_halted();
  [[nodiscard]] std::uint64_t state_bytes(const Cells& cells);

  Hosting& hosting_of(Type& type);
  Cell& cell_of(Hosting& hosting, ShardId shard, std::string_view id);
  void run(Hosting& hosting, Cell& cell, std::uint64_t sender, const wire::Message& message);
  Entity& entity_of(Hosting& hosting, Cell& cell);
  bool save(const Hosting& hosting, Cell& cell, std::string& state);
  void leave_behind(std::vector<std::unique_ptr<Cell>> cells);
  void abandon_overdue();
  bool handle(Hosting& hosting, Cell& cell, std::uint64_t sender, const wire::Message& message);
  void post(Hosting& hosting, ShardId shard, Cell& cell);
  void finish_stop(Hosting& hosting, ShardId shard);
  core::Parked park(std::uint64_t sender, const wire::Message& message, Time deadline);
  void deliver_to_worker(Hosting& hosting, Waiting waiting);
  bool pass_to_worker(std::uint64_t session, std::uint32_t type, const Waiting& waiting);
  std::uint64_t choose_worker(Hosting& hosting, ShardId shard);
  Releasing* releasing_of(const Hosting& hosting, ShardId shard);
  void stop_at_worker(Hosting& hosting, ShardId shard);
  void release_from_worker(Hosting& hosting, ShardId shard, std::uint64_t session,
                           Releasing::Then then);
  void set_aside(Worker& worker);
  void drop_at_worker(Hosting& hosting, ShardId shard, bool fenced,
                      std::vector<core::Parked>& unstarted);
  void lose_orphan_states(Hosting& hosting, ShardId shard);
  void note_lost(Hosting& hosting, ShardId shard, std::size_t states);
  void tell_of_lost();
  void expire_orphans(Hosting& hosting);
  void take_orphans(Hosting& hosting, ShardId shard, std::vector<core::Parked>& unstarted);
  void released(Hosting& hosting, ShardId shard, std::uint64_t session, Releasing part);
  bool take_states(Releasing& part, std::vector<wire::EntityState>& states);
  void refuse_release(std::uint64_t session, const wire::Released& part, Errc code,
                      const std::string& why);
  void take_unbegun(std::uint64_t session, const ShardName& shard, std::string_view raw,
                    Releasing& part);
  void say_goodbye_if_parted(std::uint64_t session);
  void force_releases();
  void settle(Hosting& hosting, Waiting waiting);
  void settle_orphans(Hosting& hosting);
  using Frames = std::vector<std::string>;
  void keep_unsent_states(std::uint64_t session, Worker& worker, Frames& unsent);
  void announce();
  [[nodiscard]] bool may_run(const PlacementSettings& settings) const {
    return !context_.config.proxy && has_role(context_.config.traits, settings.role);
  }

  DataContext& context_;
  std::weak_ptr<NodeMessenger> messenger_;
  Executor* executor_;
  std::atomic<bool> retired_{false};  // read on the executor's threads
  std::size_t waiting_bytes_ = 0;     // before what leases of it
  std::deque<Hosting> hostings_;      // by Type::index, grown as needed
  std::map<std::uint64_t, Worker> workers_;
  std::vector<HostedType> known_types_;
  std::deque<Ready> ready_;
  std::deque<Ready> halted_;    // of strict types, ahead of what is ready
  Time halted_until_ = kNever;  // none of them ends earlier
  std::set<std::pair<std::uint32_t, std::uint32_t>> stopping_;  // local shards: type, shard
  std::vector<CellMap> old_lives_;                // of shards whose stream is on its way
  std::vector<std::unique_ptr<Cell>> abandoned_;  // a handler may still be running in it
  bool in_user_code_ = false;
  bool leaving_ = false;
  bool lost_ = false;  // something is to be told of
};

}  // namespace shardbus::runtime
