// Which rare branches of the protocols something has taken, as a set of bits.
//
// Cores note them and never read them: the simulator does, to say what its seeds have not reached.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardbus {

enum class Mark : std::uint8_t {
#define SHARDBUS_MARK(name, when) name,
#include "base/marks.def"
#undef SHARDBUS_MARK
  count_of_marks,
};

inline constexpr std::size_t kMarks = static_cast<std::size_t>(Mark::count_of_marks);

inline constexpr std::array<std::string_view, kMarks> kMarkNames{
#define SHARDBUS_MARK(name, when) #name,
#include "base/marks.def"
#undef SHARDBUS_MARK
};

class Marks {
 public:
  void hit(Mark mark) { words_[index(mark) / 64] |= std::uint64_t{1} << index(mark) % 64; }
  void hit_if(bool taken, Mark mark) {
    if (taken) hit(mark);
  }
  [[nodiscard]] bool has(Mark mark) const {
    return (words_[index(mark) / 64] >> index(mark) % 64 & 1U) != 0;
  }
  void add(const Marks& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }

 private:
  static constexpr std::size_t index(Mark mark) { return static_cast<std::size_t>(mark); }

  std::array<std::uint64_t, (kMarks + 63) / 64> words_{};
};

}  // namespace shardbus
