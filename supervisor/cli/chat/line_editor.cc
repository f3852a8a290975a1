#include "supervisor/cli/chat/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cwchar>
#include <optional>
#include <string_view>
#include <utility>

#include "common/text.h"

namespace berth::cli {
namespace {

constexpr wchar_t kEscape = 0x1B;
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";
constexpr std::size_t kMostPasted = std::size_t{4} << 20U;  // characters
constexpr char kPasteOn[] = "\x1b[?2004h";
constexpr char kPasteOff[] = "\x1b[?2004l";
// Marks the parts of a prompt that take no column.
constexpr wchar_t kHidden = L'\1';

std::wstring widen(std::string_view text) {
  std::wstring out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t code = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length && at + i < text.size(); ++i) {
      code = (code << 6U) | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
    }
    out.push_back(static_cast<wchar_t>(code));
    at += length;
  }
  return out;
}

void append_utf8(std::string& out, wchar_t wide) {
  auto code = static_cast<char32_t>(wide);
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) code = 0xFFFD;
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | (code >> 6U));
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3FU));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

std::string narrow(const wchar_t* text, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) append_utf8(out, text[i]);
  return out;
}

}  // namespace

class LineEditor::Impl {
 public:
  Impl(const Environment& environment, HistoryFile& history_file)
      : environment_(environment),
        interrupts_(environment.interrupts),
        history_file_(history_file),
        out_(environment.out.terminal() ? stdout : stderr),
        colours_(environment.colours(environment.out)),
        pastes_(environment.redrawable(environment.out) || environment.redrawable(environment.err)),
        history_(history_winit()),
        edit_(el_init("berth", stdin, out_, stderr)) {
    HistEventW event{};
    history_w(history_, &event, H_SETSIZE, static_cast<int>(HistoryFile::kMostEntries));
    history_w(history_, &event, H_SETUNIQUE, 1);
    for (const std::string& entry : history_file.entries()) enter(entry);

    el_wset(edit_, EL_CLIENTDATA, this);
    el_wset(edit_, EL_SIGNAL, 0);
    el_wset(edit_, EL_HIST, history_w, history_);
    el_wset(edit_, EL_EDITOR, L"emacs");
    el_wset(edit_, EL_PROMPT_ESC, &Impl::show_prompt, kHidden);
    el_wset(edit_, EL_GETCFN, &Impl::get_character);
    el_wset(edit_, EL_ADDFN, L"berth-paste", L"Takes a paste as one piece", &Impl::paste);
    el_wset(edit_, EL_ADDFN, L"berth-new-line", L"Begins a new line", &Impl::new_line);
    bind(L"\\e[200~", L"berth-paste");
    bind(L"\\e^M", L"berth-new-line");
    bind(L"\\e^J", L"berth-new-line");
    bind(L"^R", L"em-inc-search-prev");
    bind(L"\\e[1;5C", L"em-next-word");
    bind(L"\\e[1;5D", L"ed-prev-word");
    bind(L"\\e[3~", L"ed-delete-next-char");
    bind(L"\\e[H", L"ed-move-to-beg");
    bind(L"\\e[F", L"ed-move-to-end");
    el_source(edit_, nullptr);
    enlarge();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    el_end(edit_);
    history_wend(history_);
  }

  Line read(const std::string& prompt) {
    prompt_ = widen(prompt);
    if (colours_) {
      prompt_ = std::wstring(1, kHidden) + L"\x1b[1;36m" + kHidden + prompt_ + kHidden +
                L"\x1b[0m" + kHidden;
    }
    ending_.reset();
    el_resize(edit_);
    // Before the prompt is shown: a key that a person presses when it appears is ours.
    el_wset(edit_, EL_PREP_TERM, 1);
    announce(kPasteOn);
    int count = 0;
    const wchar_t* text = el_wgets(edit_, &count);
    const std::string taken =
        text != nullptr && count > 0 ? narrow(text, static_cast<std::size_t>(count)) : "";
    announce(kPasteOff);
    if (ending_ && *ending_ != Line::Kind::kText) {
      std::fputs(*ending_ == Line::Kind::kInterrupt ? "^C\n" : "\n", out_);
      std::fflush(out_);
      el_reset(edit_);
      return {*ending_, {}};
    }
    if (text == nullptr || count <= 0) {
      std::fputs("\n", out_);
      std::fflush(out_);
      return {Line::Kind::kEnd, {}};
    }
    std::string_view line(taken);
    if (line.ends_with('\n')) line.remove_suffix(1);
    return {Line::Kind::kText, std::string(line)};
  }

  void remember(const std::string& entry) {
    history_file_.add(entry);
    enter(entry);
  }

 private:
  static Impl& self(EditLine* edit) {
    void* data = nullptr;
    el_wget(edit, EL_CLIENTDATA, &data);
    return *static_cast<Impl*>(data);
  }

  void bind(const wchar_t* keys, const wchar_t* function) {
    el_wset(edit_, EL_BIND, keys, function, nullptr);
  }

  void enter(const std::string& entry) {
    if (entry.size() > HistoryFile::kMostEntryBytes) return;
    HistEventW event{};
    history_w(history_, &event, H_ENTER, widen(entry).c_str());
  }

  // libedit cuts an entry of the history to the size that its line has at that time: give it room
  // for the longest one.
  void enlarge() {
    const std::wstring room(HistoryFile::kMostEntryBytes, L' ');
    el_winsertstr(edit_, room.c_str());
    el_deletestr(edit_, static_cast<int>(room.size()));
  }

  void announce(const char* sequence) {
    if (!pastes_) return;
    std::fputs(sequence, out_);
    std::fflush(out_);
  }

  static wchar_t* show_prompt(EditLine* edit) { return self(edit).prompt_.data(); }

  // One character for libedit: 1, or -1 where the line ends without one (see `ending_`).
  static int get_character(EditLine* edit, wchar_t* out) { return self(edit).next_character(out); }

  int next_character(wchar_t* out) {
    if (ending_) return -1;
    while (true) {
      if (const auto decoded = decode()) {
        *out = *decoded;
        return 1;
      }
      std::array<pollfd, 2> fds = {pollfd{environment_.input, POLLIN, 0},
                                   pollfd{interrupts_.fd(), POLLIN, 0}};
      // A person may take all the time there is.
      if (::poll(fds.data(), fds.size(), -1) < 0) continue;
      if (fds[1].revents != 0 && !on_signal()) return -1;
      if (fds[0].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t count = ::read(environment_.input, buffer.data(), buffer.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) {
        ending_ = count == 0 ? Line::Kind::kEnd : Line::Kind::kTerminate;
        return -1;
      }
      bytes_.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }

  // The next whole character of what was read, or nothing.
  std::optional<wchar_t> decode() {
    if (bytes_.empty()) return std::nullopt;
    const std::size_t head = std::min<std::size_t>(bytes_.size(), 4);
    const std::string_view front(bytes_.data(), head);
    const auto lead = static_cast<unsigned char>(front[0]);
    std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length > head) {
      if (utf8_complete_prefix(front) == 0) return std::nullopt;  // the rest is on its way
      length = head;
    }
    wchar_t character = 0xFFFD;
    if (!first_invalid_utf8(front.substr(0, length))) {
      character = widen(front.substr(0, length)).front();
    } else {
      length = 1;
    }
    bytes_.erase(0, length);
    return character;
  }

  // Takes one signal; false where it ends the line.
  bool on_signal() {
    const auto signal = interrupts_.next();
    if (!signal) return true;
    switch (*signal) {
      case SIGINT:
        // Behind the text, so that what is printed next does not overwrite it.
        el_cursor(edit_, static_cast<int>(kMostPasted));
        el_wset(edit_, EL_REFRESH);
        ending_ = Line::Kind::kInterrupt;
        return false;
      case SIGWINCH:
        el_resize(edit_);
        el_wset(edit_, EL_REFRESH);
        return true;
      case SIGTSTP:
        announce(kPasteOff);
        el_wset(edit_, EL_PREP_TERM, 0);
        ::kill(::getpid(), SIGSTOP);
        el_wset(edit_, EL_PREP_TERM, 1);
        announce(kPasteOn);
        el_wset(edit_, EL_REFRESH);
        return true;
      default:
        ending_ = Line::Kind::kTerminate;
        return false;
    }
  }

  // Everything up to the end of the paste, as it is: a newline is a part of the message.
  static unsigned char paste(EditLine* edit, wint_t /*key*/) {
    Impl& impl = self(edit);
    std::wstring text;
    std::wstring end;  // the last characters
    while (end != kPasteEnd) {
      wchar_t character = 0;
      if (impl.next_character(&character) != 1) return CC_FATAL;
      if (end.size() == kPasteEnd.size()) {
        if (text.size() < kMostPasted) text.push_back(end.front());
        end.erase(0, 1);
      }
      end.push_back(character);
    }
    std::wstring cleaned;
    for (std::size_t i = 0; i < text.size(); ++i) {
      wchar_t character = text[i];
      if (character == L'\r') {
        if (i + 1 < text.size() && text[i + 1] == L'\n') continue;
        character = L'\n';
      }
      if (character == kEscape || (character < 0x20 && character != L'\n' && character != L'\t') ||
          (character >= 0x7F && character < 0xA0)) {
        continue;
      }
      cleaned.push_back(character);
    }
    // A newline at the very end comes with the lines that were marked; Enter is the person's to
    // press.
    while (cleaned.ends_with(L'\n')) cleaned.pop_back();
    if (!cleaned.empty() && el_winsertstr(edit, cleaned.c_str()) != 0) return CC_REFRESH_BEEP;
    return CC_REFRESH;
  }

  static unsigned char new_line(EditLine* edit, wint_t /*key*/) {
    return el_winsertstr(edit, L"\n") == 0 ? CC_REFRESH : CC_REFRESH_BEEP;
  }

  const Environment& environment_;
  Interrupts& interrupts_;
  HistoryFile& history_file_;
  std::FILE* out_;
  bool colours_;
  bool pastes_;
  HistoryW* history_;
  EditLine* edit_;
  std::wstring prompt_;
  std::string bytes_;                 // read, but not yet a character
  std::optional<Line::Kind> ending_;  // why the line that is read ends without its newline
};

LineEditor::LineEditor(const Environment& environment, HistoryFile& history)
    : impl_(std::make_unique<Impl>(environment, history)) {}

LineEditor::~LineEditor() = default;

Line LineEditor::read(const std::string& prompt) {
  return impl_->read(prompt);
}

void LineEditor::remember(const std::string& entry) {
  impl_->remember(entry);
}

}  // namespace berth::cli
