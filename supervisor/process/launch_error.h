#pragma once

#include <chrono>
#include <string>

#include "common/result.h"

namespace berth::process {

// Why a process could not be started (kLoadFailed): "clone: Resource temporarily unavailable".
// Where this machine or berthd itself had too little of something (descriptors, processes, memory:
// EMFILE, ENFILE, EAGAIN, ENOMEM, ENOBUFS), where a file system stumbled (EIO, ESTALE) or the
// program is being written (ETXTBSY) the failure's class is `resource`, which passes by itself and
// does not outlive a restart (L21), as nothing is wrong with the model. Every other errno speaks of
// the program, its directory or its rights, and carries no class; that is `launch`.
Error launch_error(const std::string& step, int error);

// This machine has too little of something that a launch needs: class `resource`.
Error shortage_error(std::string message);

// Something that a launch needs did not come in time: class `timeout`, with that message.
Error timeout_error(std::string message);

// The program was not executed within `waited`: class `timeout`. Its file system hung or the
// machine was overloaded.
Error slow_launch_error(const std::string& program, std::chrono::milliseconds waited);

}  // namespace berth::process
