// Wakes a thread that sleeps in poll: an eventfd.
#pragma once

namespace shardbus::transport {

class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  void signal() const;  // safe from any thread
  void clear() const;   // read it whenever poll says that it is readable
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace shardbus::transport
