#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/gguf/gguf.h"
#include "common/result.h"
#include "supervisor/catalog/catalog.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/memory/model_shape.h"

namespace berth::catalog {

// Of everything that Model::parts is made of: which files, and as they are now; for this process
// only. The model's own are taken as its file_stamp says. Blocks on the file system.
std::uint64_t parts_stamp(const Model& model);

// Finds out what of the models' files costs memory. Lives for one scan, in which a file that
// several models name is read once; any one thread. Blocks on the file system.
class PartsReader {
 public:
  // What the `previous` catalogue knows of files that did not change is not read again; may be
  // null. It must outlive this.
  explicit PartsReader(const Catalog* previous);

  // Fills in Model::parts, parts_problem and parts_stamp of a model of which the rest is known.
  // `read`: the headers of its own files, where they were read just now; may be null.
  void fill(Model& model, const gguf::WholeModel* read);

 private:
  using Shape = Result<core::ModelShape>;

  [[nodiscard]] Shape own_shape(const Model& model, const gguf::WholeModel* read) const;
  // Of a companion; from the first time on from memory.
  const Shape& draft(const std::string& path);
  const Shape& adapter(const std::string& path);

  std::map<std::uint64_t, const Model*> same_files_;  // by file_stamp; those with parts
  std::map<std::uint64_t, const Model*> same_parts_;  // by parts_stamp
  std::map<std::string, Shape> drafts_;               // by path
  std::map<std::string, Shape> adapters_;
};

}  // namespace berth::catalog
