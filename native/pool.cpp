#include "pool.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace ccq {
namespace {

struct Job {
    const std::function<void(std::size_t)>* task;
    std::size_t left;
    std::exception_ptr error;
    std::mutex lock;
    std::condition_variable done;

    void run(std::size_t i) {
        std::exception_ptr caught;
        try {
            (*task)(i);
        } catch (...) {
            caught = std::current_exception();
        }
        const std::lock_guard<std::mutex> guard(lock);
        if (caught && !error) error = caught;
        if (--left == 0) done.notify_all();
    }
};

class Pool {
   public:
    void submit(Job* job, std::size_t i) {
        const std::lock_guard<std::mutex> guard(lock_);
        queue_.push_back({job, i});
        if (idle_ < queue_.size()) {
            std::thread(&Pool::work, this).detach();  // ends with the process
            ++idle_;                                  // it is about to wait for the work just queued
        }
        wake_.notify_one();
    }

   private:
    struct Item {
        Job* job;
        std::size_t index;
    };

    void work() {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            wake_.wait(guard, [&] { return !queue_.empty(); });
            const Item item = queue_.front();
            queue_.pop_front();
            --idle_;
            guard.unlock();
            item.job->run(item.index);
            guard.lock();
            ++idle_;
        }
    }

    std::mutex lock_;
    std::condition_variable wake_;
    std::deque<Item> queue_;
    std::size_t idle_ = 0;
};

// Threads do not survive a fork, and locks may be held by them: the child gets a pool of its own. Never freed, since its
// threads may outlive static destruction.
Pool& pool() {
    static std::mutex lock;
    static Pool* current = nullptr;
    static pid_t owner = 0;
    const std::lock_guard<std::mutex> guard(lock);
    if (!current || owner != getpid()) current = new Pool, owner = getpid();
    return *current;
}

}  // namespace

void run_parallel(std::size_t n, const std::function<void(std::size_t)>& task) {
    if (n == 1) return task(0);
    Job job{&task, n, nullptr, {}, {}};
    Pool& threads = pool();
    for (std::size_t i = 1; i < n; ++i) threads.submit(&job, i);
    job.run(0);
    std::unique_lock<std::mutex> guard(job.lock);
    job.done.wait(guard, [&] { return job.left == 0; });
    if (job.error) std::rethrow_exception(job.error);
}

}  // namespace ccq
