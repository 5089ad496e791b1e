// The k best rows seen so far: exact, equal keys by position.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ccq {

struct Candidate {
    double key;
    std::uint64_t position;
    bool operator<(const Candidate& o) const { return key < o.key || (key == o.key && position < o.position); }
};

// A reservoir: candidates collect until there are a few times k, then all but the k best are dropped. Rows must be
// offered in ascending order of position.
class TopK {
   public:
    TopK() = default;

    // `bound`: a guess, no row above it is kept; it may be infinite.
    TopK(std::size_t k, double bound) : k_(k), bound_(bound) { kept_.reserve(capacity()); }

    // Only rows with a key up to this can matter. Once k rows are held, one as good as the worst of them cannot, since it
    // comes later: then keys have to be below.
    double bound() const { return bound_; }
    bool strict() const { return strict_; }
    std::size_t size() const { return kept_.size(); }

    void offer(double key, std::uint64_t position) {
        if (strict_ ? key < bound_ : key <= bound_) {
            kept_.push_back({key, position});
            if (kept_.size() == capacity()) shrink();
        }
    }

    // Drop all but the k best, and tighten the bound.
    void shrink() {
        if (kept_.size() < k_) return;
        if (kept_.size() > k_) {
            std::nth_element(kept_.begin(), kept_.begin() + (std::ptrdiff_t)(k_ - 1), kept_.end());
            kept_.resize(k_);
        }
        const auto worst = std::max_element(kept_.begin(), kept_.end());
        if (worst->key <= bound_) bound_ = worst->key, strict_ = true;
    }

    // Take what another one kept of rows at other positions.
    void merge(const TopK& other) { kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end()); }

    // The k best, in order.
    const std::vector<Candidate>& finish() {
        if (kept_.size() > k_) {
            std::nth_element(kept_.begin(), kept_.begin() + (std::ptrdiff_t)(k_ - 1), kept_.end());
            kept_.resize(k_);
        }
        sort();
        return kept_;
    }

   private:
    std::size_t capacity() const { return k_ < 64 ? k_ + std::max<std::size_t>(16, 2 * k_) : 3 * k_; }

    // Many candidates: two passes of a radix sort over 22 bits of the key, then insertion repairs what is left.
    void sort() {
        const std::size_t n = kept_.size();
        if (n < 128) return std::sort(kept_.begin(), kept_.end());
        double low = kept_[0].key, high = low;
        for (const auto& c : kept_) low = std::min(low, c.key), high = std::max(high, c.key);
        const double scale = 4194303.0 / (high - low);
        if (!std::isfinite(scale)) return std::sort(kept_.begin(), kept_.end());
        const auto digit = [&](const Candidate& c) {
            return std::min<std::uint32_t>((std::uint32_t)((c.key - low) * scale), 4194303u);
        };
        std::vector<std::uint32_t> counts(4096, 0);
        std::uint32_t *lower = counts.data(), *upper = lower + 2048;
        for (const auto& c : kept_) ++lower[digit(c) & 2047], ++upper[digit(c) >> 11];
        for (std::uint32_t i = 0, a = 0, b = 0; i < 2048; ++i) {
            const std::uint32_t x = lower[i], y = upper[i];
            lower[i] = a, upper[i] = b;
            a += x, b += y;
        }
        std::vector<Candidate> other(n);
        for (const auto& c : kept_) other[lower[digit(c) & 2047]++] = c;
        for (const auto& c : other) kept_[upper[digit(c) >> 11]++] = c;
        // Equal digits may still be out of order. Many of them would make insertion quadratic.
        std::size_t moves = 0;
        for (std::size_t i = 1; i < n; ++i) {
            const Candidate c = kept_[i];
            std::size_t j = i;
            for (; j && c < kept_[j - 1]; --j) kept_[j] = kept_[j - 1];
            kept_[j] = c;
            if ((moves += i - j) > 16 * n) return std::sort(kept_.begin(), kept_.end());
        }
    }

    std::size_t k_ = 0;
    double bound_ = std::numeric_limits<double>::infinity();
    bool strict_ = false;
    std::vector<Candidate> kept_;
};

}  // namespace ccq
