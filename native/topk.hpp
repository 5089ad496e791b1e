// The k best rows seen so far: exact, equal keys by label.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace ccq {

struct Candidate {
    double key;
    std::uint64_t label;
    bool operator<(const Candidate& o) const { return key < o.key || (key == o.key && label < o.label); }
};

// A reservoir: candidates collect until there are a few times k, then all but the k best are dropped. Rows must be
// offered in ascending order of label.
class TopK {
   public:
    TopK() = default;

    // `bound`: a guess, no row above it is kept; it may be infinite.
    TopK(std::size_t k, double bound) : k_(k), bound_(bound) {
        if (k == 0) throw std::invalid_argument("k: expected at least 1");
        kept_.reserve(capacity());
    }

    // Only rows with a key up to this can matter. Once k rows are held, one as good as the worst of them cannot, since it
    // comes later: then keys have to be below.
    double bound() const { return bound_; }
    bool strict() const { return strict_; }
    std::size_t size() const { return kept_.size(); }

    void offer(double key, std::uint64_t label) {
        if (strict_ ? key < bound_ : key <= bound_) {
            kept_.push_back({key, label});
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

    // Take what another one kept of other rows.
    void merge(const TopK& other) { kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end()); }

    // The k best, in order.
    const std::vector<Candidate>& finish() {
        if (kept_.size() < 128) {
            std::sort(kept_.begin(), kept_.end());
        } else {
            drop_most();
            sort();
        }
        if (kept_.size() > k_) kept_.resize(k_);
        return kept_;
    }

   private:
    static constexpr std::uint32_t kHalf = 2048;  // half of a digit of 22 bits

    std::size_t capacity() const { return k_ + std::max<std::size_t>(16, k_ < 64 ? 2 * k_ : k_); }

    // Drop what is behind the k-th best by the upper half of its digit alone.
    void drop_most() {
        if (kept_.size() <= k_ || !scale()) return;
        std::uint32_t counts[kHalf] = {};
        for (const auto& c : kept_) ++counts[digit(c) / kHalf];
        std::uint32_t last = 0;
        for (std::size_t seen = counts[0]; seen < k_; seen += counts[last]) ++last;
        std::size_t n = 0;
        for (const auto& c : kept_) {
            kept_[n] = c;
            n += digit(c) / kHalf <= last;
        }
        kept_.resize(n);
    }

    // Two passes of a radix sort, then insertion repairs what is left.
    void sort() {
        const std::size_t n = kept_.size();
        if (!scale()) return std::sort(kept_.begin(), kept_.end());
        std::uint32_t lower[kHalf] = {}, upper[kHalf] = {};
        for (const auto& c : kept_) ++lower[digit(c) % kHalf], ++upper[digit(c) / kHalf];
        for (std::uint32_t i = 0, a = 0, b = 0; i < kHalf; ++i) {
            const std::uint32_t x = lower[i], y = upper[i];
            lower[i] = a, upper[i] = b;
            a += x, b += y;
        }
        std::vector<Candidate> other(n);
        for (const auto& c : kept_) other[lower[digit(c) % kHalf]++] = c;
        for (const auto& c : other) kept_[upper[digit(c) / kHalf]++] = c;
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

    // Spread the keys over all digits. False if they cannot be.
    bool scale() {
        low_ = kept_[0].key;
        double high = low_;
        for (const auto& c : kept_) low_ = std::min(low_, c.key), high = std::max(high, c.key);
        scale_ = (kHalf * kHalf - 1) / (high - low_);
        return std::isfinite(scale_) && std::isfinite(high - low_);
    }

    std::uint32_t digit(const Candidate& c) const {
        return std::min((std::uint32_t)((c.key - low_) * scale_), kHalf * kHalf - 1);
    }

    std::size_t k_ = 0;
    double bound_ = std::numeric_limits<double>::infinity();
    bool strict_ = false;
    double low_ = 0, scale_ = 0;
    std::vector<Candidate> kept_;
};

}  // namespace ccq
