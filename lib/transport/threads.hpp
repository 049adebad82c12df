// Threads of the library: named, and deaf to signals, which belong to the host process.
#pragma once

#include <pthread.h>
#include <csignal>
#include <string>
#include <thread>
#include <utility>

namespace shardbus::transport {

template <class F>
std::thread start_thread(const char* name, F run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([name, run = std::move(run)]() mutable {
    pthread_setname_np(pthread_self(), name);
    run();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace shardbus::transport
