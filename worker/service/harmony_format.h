#pragma once

#include <string>
#include <string_view>

namespace berth::worker {

// The grammar of a whole answer in OpenAI's harmony format (gpt-oss) whose final message `grammar`
// describes: perhaps a message in the channel "analysis", then the header of the channel "final" in
// one of its spellings, then what the rule `root` of `grammar` allows. So no answer comes past the
// grammar, however it begins. With `in_reasoning` the prompt has opened the analysis already.
// `grammar` has passed check_gbnf(). https://cookbook.openai.com/articles/openai-harmony describes
// the format.
std::string harmony_format(std::string_view grammar, bool in_reasoning);

}  // namespace berth::worker
