#pragma once

#include <memory>
#include <vector>

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/answer/answer_form.h"
#include "worker/engine/engine.h"
#include "worker/lanes/job.h"
#include "worker/service/chat_tools.h"
#include "worker/service/pending_call.h"

namespace berth::worker {

class GenerateStream;

// Makes a job out of a Generate call: checks it, renders and tokenizes its prompt, makes its
// grammar and sampler, and submits it to the lanes with a sink that understands the answer.
class GenerateWork final : public CallWork {
 public:
  GenerateWork(std::shared_ptr<GenerateStream> stream, v1::GenerateRequest request);
  ~GenerateWork() override;

  void run(Preparer& preparer) override;
  void deliver() override;

 private:
  Status make_job();
  Status read_input(Job& job);
  Status read_chat(Job& job);
  Status shape_answer(SamplingSettings& sampling);
  std::shared_ptr<JobSink> make_sink();

  const std::shared_ptr<GenerateStream> stream_;
  const v1::GenerateRequest request_;
  Preparer* preparer_ = nullptr;  // set by run()
  Status outcome_;
  std::unique_ptr<Job> job_;
  ChatTools tools_;
  AnswerForm form_;
};

}  // namespace berth::worker
