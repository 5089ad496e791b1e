#include "pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace ccq {
namespace {

struct Job {
    const std::function<void(std::size_t)>* task;
    std::size_t n;
    std::size_t next;  // which nobody has taken yet
    std::size_t left;  // that are not done
    std::exception_ptr error;
    std::condition_variable done;
};

class Pool {
   public:
    void run(std::size_t n, const std::function<void(std::size_t)>& task) {
        Job job{&task, n, 0, n, nullptr, {}};
        std::unique_lock<std::mutex> guard(lock_);
        add_threads(n - 1);
        queue_.push_back(&job);
        for (std::size_t i = 1; i < n; ++i) wake_.notify_one();
        while (job.next < n) run_next(&job, guard);
        job.done.wait(guard, [&] { return job.left == 0; });
        if (job.error) std::rethrow_exception(job.error);
    }

   private:
    void add_threads(std::size_t most) {
        try {
            for (; threads_ < most; ++threads_) std::thread(&Pool::work, this).detach();  // ends with the process
        } catch (const std::system_error&) {  // those that are there do the work, or the caller alone
        }
    }

    void work() {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            wake_.wait(guard, [&] { return !queue_.empty(); });
            run_next(queue_.front(), guard);
        }
    }

    // Its owner waits for all that was taken, so the job lives until this has counted it as done.
    void run_next(Job* job, std::unique_lock<std::mutex>& guard) {
        const std::size_t i = job->next++;
        if (job->next == job->n) queue_.erase(std::find(queue_.begin(), queue_.end(), job));
        guard.unlock();
        std::exception_ptr caught;
        try {
            (*job->task)(i);
        } catch (...) {
            caught = std::current_exception();
        }
        guard.lock();
        if (caught && !job->error) job->error = caught;
        if (--job->left == 0) job->done.notify_all();
    }

    std::mutex lock_;
    std::condition_variable wake_;
    std::deque<Job*> queue_;  // of which something has not been taken
    std::size_t threads_ = 0;
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
    pool().run(n, task);
}

}  // namespace ccq
