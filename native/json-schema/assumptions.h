// Which unfinished work an answer assumed the outcome of: such an answer may change once that is known.
#pragma once
#include <utility>

namespace onpolicy::grammar {

struct Assumed {
  bool running = false;   // that a formula that is being normalized has no shapes
  bool checking = false;  // that one whose emptiness is being checked is empty
};

class Assumptions {
 public:
  void Add(const Assumed& more) {
    now_.running = now_.running || more.running;
    now_.checking = now_.checking || more.checking;
  }
  // What `ask` answers, and what that assumed; the answers around it do not assume it by this.
  template <typename Ask>
  std::pair<bool, Assumed> AskApart(Ask ask) {
    const Assumed outer = std::exchange(now_, {});
    const bool answer = ask();
    return {answer, std::exchange(now_, outer)};
  }
  // Whether `work` assumes something of running work; what it assumes of checks is added to what is assumed around it.
  template <typename Work>
  bool AssumesRunning(Work work) {
    const bool outer = std::exchange(now_.running, false);
    work();
    return std::exchange(now_.running, outer);
  }
  // Whether `ask` says yes and assumes nothing.
  template <typename Ask>
  bool IsSurely(Ask ask) {
    const auto [answer, assumed] = AskApart(ask);
    Add({.running = assumed.running});
    return answer && !assumed.running && !assumed.checking;
  }

 private:
  Assumed now_;
};

}  // namespace onpolicy::grammar
