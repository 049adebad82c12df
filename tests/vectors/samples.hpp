// The conformance vectors as C++ values: the files in valid/ and refused/ are written from these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/model/allocation.hpp"
#include "shardbus/status.hpp"

namespace shardbus::test {

struct ValidSample {
  std::string_view file;  // valid/<file>.json
  std::string name;
  std::string bytes;      // one envelope
  std::string canonical;  // what a receiver that encodes it again gives
};

struct RefusedSample {
  std::string_view file;  // refused/<file>.json
  std::string name;
  std::string bytes;
  Errc error;
};

std::vector<ValidSample> valid_samples();
std::vector<RefusedSample> refused_samples();

// Appended to by the parts of valid_samples().
class Samples {
 public:
  explicit Samples(std::vector<ValidSample>& all) : all_(all) {}
  void file(std::string_view name) { file_ = name; }
  // A canonical envelope, written by `write(std::string&)`.
  template <class Write>
  void add(std::string name, Write&& write) {
    std::string bytes;
    write(bytes);
    all_.push_back({file_, std::move(name), bytes, bytes});
  }
  // Another spelling of the sample added last.
  void spelled(std::string name, std::string bytes) {
    all_.push_back({file_, std::move(name), std::move(bytes), all_.back().canonical});
  }

 private:
  std::vector<ValidSample>& all_;
  std::string_view file_;
};

void add_control_samples(Samples& samples, const AllocationTable& table);
void add_handoff_samples(Samples& samples);

}  // namespace shardbus::test
