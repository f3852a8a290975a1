#pragma once

#include "supervisor/core/memory/domain_table.h"

namespace berth::core {

// The table `fresh` with the rows of `before` where they were, as charges that are under way name
// their domains by them. A domain that is not there any more keeps its row and is `lost`; a new one
// comes behind. A device whose id alone is another one, as its driver answers now, keeps its row.
// What there is no row for is not used, and a problem says so.
DomainTable renewed(const DomainTable& before, DomainTable fresh);

}  // namespace berth::core
