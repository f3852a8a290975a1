#include "worker/service/generate_work.h"

#include <algorithm>
#include <string>
#include <utility>

#include "worker/answer/answer_parser.h"
#include "worker/service/answer_shape.h"
#include "worker/service/answer_sink.h"
#include "worker/service/call_lines.h"
#include "worker/service/forced_call.h"
#include "worker/service/generate_stream.h"
#include "worker/service/invalid_argument.h"
#include "worker/service/preparer.h"
#include "worker/service/prompt_tokens.h"
#include "worker/service/request_check.h"
#include "worker/service/tool_call_id.h"

namespace berth::worker {
namespace {

bool parts_anything(const AnswerForm& form) {
  return form.tools != ToolForm::kNone || !form.reasoning_close.empty();
}

}  // namespace

GenerateWork::GenerateWork(std::shared_ptr<GenerateStream> stream, v1::GenerateRequest request)
    : stream_(std::move(stream)), request_(std::move(request)) {}

GenerateWork::~GenerateWork() = default;

void GenerateWork::run(Preparer& preparer) {
  preparer_ = &preparer;
  outcome_ = make_job();
}

void GenerateWork::deliver() {
  if (!outcome_) {
    stream_->on_end(outcome_.error());
    return;
  }
  job_->sink = make_sink();
  job_->arrived = stream_->arrived();
  job_->deadline = deadline_of(*stream_);
  if (auto submitted = preparer_->runner().submit(std::move(job_)); !submitted) {
    stream_->on_end(submitted.error());
  }
}

Status GenerateWork::make_job() {
  const auto& engine = preparer_->engine();
  auto checked = check_request(request_, engine.facts());
  if (!checked) return fail(checked.error());
  job_ = std::move(checked->job);
  job_->cache_scope = request_.cache_scope();
  if (request_.has_chat()) {
    auto tools = check_chat_tools(request_.chat());
    if (!tools) return fail(tools.error());
    tools_ = std::move(*tools);
  }
  if (auto fits = check_combination(request_, tools_); !fits) return fits;
  if (auto read = read_input(*job_); !read) return read;
  if (auto fits = check_window(job_->prompt.size(), engine.facts().window); !fits) return fits;
  if (auto shaped = shape_answer(checked->sampling); !shaped) return shaped;
  auto sampler = engine.make_sampler(checked->sampling);
  if (!sampler) return fail(sampler.error());
  job_->sampler = std::move(*sampler);
  return {};
}

Status GenerateWork::read_input(Job& job) {
  const auto& engine = preparer_->engine();
  Result<std::vector<TokenId>> tokens;
  switch (request_.input_case()) {
    case v1::GenerateRequest::kPrompt:
      tokens = text_tokens(*preparer_, request_.prompt(), "prompt");
      break;
    case v1::GenerateRequest::kTokens:
      tokens = check_tokens(request_.tokens().ids(), engine.facts().vocabulary, "tokens.ids");
      break;
    case v1::GenerateRequest::kChat:
      return read_chat(job);
    case v1::GenerateRequest::INPUT_NOT_SET:
      return invalid_argument(
          "input", "The request has no input: one of chat, prompt and tokens must be set.");
  }
  if (!tokens) return fail(tokens.error());
  job.prompt = std::move(*tokens);
  return {};
}

Status GenerateWork::read_chat(Job& job) {
  auto prompt = chat_tokens(*preparer_, request_.chat(), tools_);
  if (!prompt) return fail(prompt.error());
  job.prompt = std::move(prompt->tokens);
  auto tools = PromptTools::kNone;
  if (!tools_.tools.empty()) {
    tools = prompt->tools_described ? PromptTools::kDescribed : PromptTools::kByTemplate;
  }
  form_ = detect_answer_form(preparer_->template_source(), prompt->tail, tools);
  return {};
}

Status GenerateWork::shape_answer(SamplingSettings& sampling) {
  if (tools_.choice.is_forced()) {
    auto applied = apply_forced_call(tools_, form_, sampling);
    if (!applied) return applied;
  } else if (auto applied = apply_format(request_.format(), sampling); !applied) {
    return applied;
  }
  if (!sampling.grammar.empty()) {
    auto placed = begin_after_reasoning(form_, request_.format(), sampling);
    if (!placed) return placed;
  }
  if (!parts_anything(form_)) return {};
  for (const auto text : needed_control_texts(form_)) {
    if (const auto token = preparer_->engine().control_token(text)) {
      job_->shown_controls.push_back(*token);
    }
  }
  return {};
}

std::shared_ptr<JobSink> GenerateWork::make_sink() {
  std::unique_ptr<AnswerParser> parser;
  if (parts_anything(form_) && !request_.chat().raw_answer()) {
    parser =
        std::make_unique<AnswerParser>(form_, AnswerOptions{tools_.names(), &random_tool_call_id});
  }
  return std::make_shared<AnswerSink>(preparer_->engine(), stream_, std::move(parser),
                                      request_.has_top_logprobs());
}

}  // namespace berth::worker
