// Runs of groups of rows, for threads to share and to sample from.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout.hpp"

namespace ccq {

// A run of full groups of one segment, and how many rows of the partial group at the segment's end go with them.
struct Piece {
    const Segment* segment;
    std::size_t first, full, rest;
};
using Pieces = std::vector<Piece>;

// Groups are numbered through all segments.
class Groups {
   public:
    explicit Groups(const std::vector<Segment>& segments) : segments_(segments), starts_(segments.size() + 1, 0) {
        for (std::size_t s = 0; s < segments.size(); ++s)
            starts_[s + 1] = starts_[s] + (segments[s].rows + kGroup - 1) / kGroup;
    }

    std::size_t count() const { return starts_.back(); }

    // The groups from begin up to end. A partial one belongs to those that hold its number.
    Pieces range(std::size_t begin, std::size_t end) const {
        Pieces out;
        for (std::size_t s = 0; s < segments_.size(); ++s) {
            const std::size_t lo = std::max(begin, starts_[s]), hi = std::min(end, starts_[s + 1]);
            if (lo >= hi) continue;
            const std::size_t first = lo - starts_[s], last = hi - starts_[s];
            const std::size_t full = std::min(last, segments_[s].rows / kGroup);
            const std::size_t rest = last > full ? segments_[s].rows % kGroup : 0;
            out.push_back({&segments_[s], first, full > first ? full - first : 0, rest});
        }
        return out;
    }

    // About n full groups from everywhere, one of each n-th part, shaken so that no period of the data is met. Call
    // visit(segment, group) for each.
    template <class Visit>
    void sample(std::size_t n, Visit visit) const {
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t number = std::min(count() - 1, (i * count() + (i * 2654435761u) % count()) / n);
            const auto s = (std::size_t)(std::upper_bound(starts_.begin(), starts_.end(), number) - starts_.begin() - 1);
            const std::size_t group = number - starts_[s];
            if (group < segments_[s].rows / kGroup) visit(segments_[s], group);
        }
    }

   private:
    const std::vector<Segment>& segments_;
    std::vector<std::size_t> starts_;
};

inline std::uint64_t live(const Segment& s, std::size_t group) { return s.mask ? s.mask[group] : ~std::uint64_t{0}; }

}  // namespace ccq
