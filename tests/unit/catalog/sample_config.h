#pragma once

namespace berth::catalog {

// A configuration that sets every section, as users write it.
inline constexpr const char* kSampleConfig = R"toml([server]
grpc      = ["unix:/run/berth/berth.sock", "127.0.0.1:50061"]
http      = "127.0.0.1:11500"
state_dir = "/var/lib/berth"      # SQLite, checkpoints
run_dir   = "/run/berth"          # sockets
bank_dir  = "auto"                # RAM tier of sessions (S6)
log_dir   = "/var/log/berth"      # one file per model
log_keep      = 5                 # L10
log_content   = false
drain_timeout = "30s"             # L29
flush_budget  = "30s"             # L29, S26
queue_timeout = "10m"             # M19
max_wait      = "10s"             # M12, M13
swap_drain    = "off"             # M13
grace         = "10s"             # M8
retry_grace   = "10s"             # L5, M8
max_body      = "64MiB"
allowed_hosts = []                # besides loopback and the listening address
cors_origins  = []
tls_cert = ""
tls_key  = ""

[auth]                            # none set: loopback and the Unix socket only
keys_file = "/etc/berth/keys"     # name:role:tenant_group:hash per line; roles client, admin
key_requests_per_minute = 0       # 0 = no limit
key_concurrency = 0
anonymous = false                 # true admits network clients without a key, un-entitled

[memory]
host_budget   = "auto"
device_budget = "auto"
bank_max      = "auto"
auto_share    = 0.5               # M6
auto_context_max = 32768

[memory.devices."GPU-uuid"]       # the stable id of M1
budget = "20GiB"
domain = "auto"                   # or "own"

[sessions]
restore_wait        = "8s"        # S29: at most, and at most half of the recompute
disk_max            = "auto"
disk_free_min       = "auto"
disk_write_per_hour = "64GiB"
encryption_credential = ""

[idle]
after = "5m"
context_probe = true
self_test     = true
calibration   = true              # C12's re-queueing
prefill_target = "10m"            # I16

[defaults]                        # any key of a model
load_timeout = "30m"              # L7
load_stall   = "auto"             # L8
wedge_after  = "auto"             # L9
fatal_exceptions = ["ValueError", "ModuleNotFoundError", "ImportError"]

[models]
dirs = ["/srv/models"]            # every *.gguf (first shard) is a model named by its file stem

[model."qwen3-8b"]                # overrides, or a model outside the dirs
path = "/srv/models/qwen3-8b-q4_k_m.gguf"
aliases = ["gpt-4o-mini"]
context = "auto"                  # or a number
sequences = 4
ttl = "30m"
pin = false

[model."glm-ocr"]
kind = "command"
command = ["vllm", "serve", "zai-org/GLM-OCR", "--port", "{port}", "--api-key", "{api_key}"]
probe = "completion"              # or embedding, or path:/ready
memory = { "GPU-uuid" = "14GiB" }     # per domain: host or a device's id
)toml";

}  // namespace berth::catalog
