#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::rpc {

// Requests to programs with an OpenAI-compatible endpoint, and what their answers prove. The texts
// come from programs that are not trusted: nothing in them is an error of ours, and whatever cannot
// be read proves nothing.

// What a program says of the model that it serves, from its answer to GET /v1/models.
struct ServedModel {
  std::string name;          // at most 512 bytes
  std::uint32_t window = 0;  // tokens; 0: not said
};
std::optional<ServedModel> read_models(std::string_view body);

// Bodies that ask for one token, or for one embedding.
std::string completion_request(const std::string& model);
std::string chat_request(const std::string& model);
std::string embedding_request(const std::string& model);

// The answer holds a choice; a vector that is not empty.
bool proves_completion(std::string_view body);
bool proves_embedding(std::string_view body);

}  // namespace berth::rpc
