// The launcher's side of the conversation with a resident. A frame consists of a length (four bytes, big-endian), a letter, and as many bytes as the length
// says. src/resident/frame.ts contains the other side and the meaning of the letters.
//
// L3. No command runs twice: if the launcher runs a command itself, the resident has not begun it and cannot begin it any more.
// L4. Lengths that come over the socket are checked. The peer must have the user id of this process (SO_PEERCRED).

#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST_BYTES_MAX = 1 << 20, PIECE_BYTES = 1 << 16, HEADER_BYTES = 5, ACCEPT_MS_DEFAULT = 1000 };
enum { READER_GONE = 141, FAILED = 1, UNKNOWN_OUTCOME = 255 };

static unsigned char inbox[HEADER_BYTES + PIECE_BYTES], piece[HEADER_BYTES + PIECE_BYTES];
static size_t inbox_bytes;

// Connects to the resident and returns the descriptor; -1: there is no resident.
static int connect_resident(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (!format(address.sun_path, sizeof address.sun_path, "%s", socket_path)) return -1;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof peer && peer.uid == geteuid()) return fd;
  } else if (errno == ENOENT || errno == ECONNREFUSED) {
    maybe_start();
  }
  close(fd);
  return -1;
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool wait_for(int fd, short events, int64_t deadline_ms) {
  struct pollfd one = {.fd = fd, .events = events};
  int64_t left_ms = deadline_ms < 0 ? -1 : deadline_ms - now_ms();
  if (deadline_ms >= 0 && left_ms <= 0) return false;
  return poll(&one, 1, (int)left_ms) > 0 || errno == EINTR;
}

static bool send_all(int fd, const unsigned char *bytes, size_t count, int64_t deadline_ms) {
  while (count > 0) {
    ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR && (errno != EAGAIN || !wait_for(fd, POLLOUT, deadline_ms))) return false;
    if (sent > 0) bytes += sent, count -= (size_t)sent;
  }
  return true;
}

static void head(unsigned char *frame, char letter, size_t bytes) {
  for (int i = 0; i < 4; i++) frame[i] = (unsigned char)(bytes >> (24 - 8 * i));
  frame[4] = (unsigned char)letter;
}

static bool add(unsigned char *request, size_t *at, const char *text) {
  size_t bytes = strlen(text) + 1;
  if (bytes > REQUEST_BYTES_MAX - *at) return false;
  memcpy(request + *at, text, bytes);
  *at += bytes;
  return true;
}

static bool add_list(unsigned char *request, size_t *at, char **list) {
  char count[24];
  size_t items = 0;
  while (list[items] != NULL) items++;
  if (!format(count, sizeof count, "%zu", items) || !add(request, at, count)) return false;
  for (size_t i = 0; i < items; i++)
    if (!add(request, at, list[i])) return false;
  return true;
}

// Sends the request: circumstances, terminals (a sum: 1 if standard input is a terminal, 2 for standard output, 4 for standard error), name, directory,
// arguments, environment. Each text ends with a zero byte, and each list begins with the number of its texts.
static bool send_request(int fd, int64_t deadline_ms) {
  unsigned char *request = malloc(REQUEST_BYTES_MAX);
  if (request == NULL) return false;
  const char terminals[2] = {(char)('0' + (isatty(0) ? 1 : 0) + (isatty(1) ? 2 : 0) + (isatty(2) ? 4 : 0)), '\0'};
  size_t at = HEADER_BYTES;
  bool fits = add(request, &at, circumstances) && add(request, &at, terminals) && add(request, &at, name) && add(request, &at, cwd) &&
              add_list(request, &at, arguments) && add_list(request, &at, environ);
  if (fits) head(request, 'Q', at - HEADER_BYTES);
  bool sent = fits && send_all(fd, request, at, deadline_ms);
  free(request);
  return sent;
}

// Returns the text of an error. Likely errors have the texts of Node.js.
static const char *write_error(int number) {
  switch (number) {
    case ENOSPC:
      return "ENOSPC: no space left on device";
    case EDQUOT:
      return "EDQUOT: disk quota exceeded";
    case EFBIG:
      return "EFBIG: file too large";
    case EIO:
      return "EIO: i/o error";
    default:
      return strerror(number);
  }
}

// Writes to a standard stream. If its reader is gone, ends this process with the status of SIGPIPE, as src/cli/run-process.ts does.
static void write_out(int to, const unsigned char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(to, bytes, count);
    if (written > 0) bytes += written, count -= (size_t)written;
    else if (written < 0 && errno == EAGAIN) wait_for(to, POLLOUT, -1);
    else if (written < 0 && (errno == EPIPE || errno == ECONNRESET)) exit(READER_GONE);
    else if (written < 0 && errno != EINTR) {
      if (to == 2) return;
      dprintf(2, "cannot write output: %s, write\n", write_error(errno));
      exit(FAILED);
    }
  }
}

static void __attribute__((noreturn)) outcome_unknown(void) {
  dprintf(2, "%s: the resident process that ran the command has ended: it is not known whether the command was carried out\n", name);
  exit(UNKNOWN_OUTCOME);
}

// Reads a piece of standard input and sends it; an empty piece means the end of the input. Returns false if no piece could be read yet.
static bool give_input(int fd) {
  ssize_t bytes = read(0, piece + HEADER_BYTES, PIECE_BYTES);
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (bytes < 0) {
    dprintf(2, "%s: standard input: %s\n", name, strerror(errno));
    exit(FAILED);
  }
  head(piece, 'I', (size_t)bytes);
  // If the resident is gone, next_frame notices it.
  send_all(fd, piece, HEADER_BYTES + (size_t)bytes, -1);
  return true;
}

enum outcome { FRAME, GONE, TIMEOUT };

// Waits until the inbox begins with a complete frame. Meanwhile, if the resident has asked for a piece of standard input (wanted), sends it.
static enum outcome next_frame(int fd, int64_t deadline_ms, bool *wanted, size_t *bytes) {
  for (;;) {
    if (inbox_bytes >= HEADER_BYTES) {
      *bytes = (size_t)inbox[0] << 24 | (size_t)inbox[1] << 16 | (size_t)inbox[2] << 8 | inbox[3];
      if (*bytes > PIECE_BYTES) return GONE;
      if (inbox_bytes - HEADER_BYTES >= *bytes) return FRAME;
    }
    ssize_t received = recv(fd, inbox + inbox_bytes, sizeof inbox - inbox_bytes, 0);
    if (received > 0) {
      inbox_bytes += (size_t)received;
      continue;
    }
    if (received == 0 || (errno != EAGAIN && errno != EINTR)) return GONE;
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = *wanted ? 0 : -1, .events = POLLIN}};
    int64_t left_ms = deadline_ms < 0 ? -1 : deadline_ms - now_ms();
    if (deadline_ms >= 0 && left_ms <= 0) return TIMEOUT;
    if (poll(both, 2, (int)left_ms) > 0 && both[1].revents != 0 && give_input(fd)) *wanted = false;
  }
}

// Sends the request, and serves the command until its end, which ends this process. Returns only if this process must run the command itself.
static void converse(int fd) {
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  int64_t deadline_ms = now_ms() + number_setting("PARTITA_RESIDENT_ACCEPT_MS", ACCEPT_MS_DEFAULT);
  bool accepted = false, gave_up = false, wanted = false;
  size_t bytes = 0;
  if (!send_request(fd, deadline_ms)) return; // the resident never runs an incomplete request
  sigaction(SIGPIPE, &ignore, &before);
  for (;;) {
    enum outcome outcome = next_frame(fd, deadline_ms, &wanted, &bytes);
    if (outcome == TIMEOUT) {
      // From now on the resident cannot accept the command. If it has accepted the command before, the frame can still be read.
      shutdown(fd, SHUT_RDWR);
      deadline_ms = -1;
      gave_up = true;
      continue;
    }
    if (outcome == GONE && accepted) outcome_unknown();
    if (outcome == GONE || inbox[4] == 'N') break;
    unsigned char *payload = inbox + HEADER_BYTES;
    switch (inbox[4]) {
      case 'A':
        accepted = true;
        deadline_ms = -1;
        if (gave_up) outcome_unknown();
        break;
      case 'O':
      case 'E':
        write_out(inbox[4] == 'O' ? 1 : 2, payload, bytes);
        break;
      case 'W':
        wanted = true;
        break;
      case 'X':
        exit(bytes == 1 ? payload[0] : UNKNOWN_OUTCOME);
      default:
        outcome_unknown();
    }
    inbox_bytes -= HEADER_BYTES + bytes;
    memmove(inbox, payload + bytes, inbox_bytes);
  }
  sigaction(SIGPIPE, &before, NULL);
}

void run_by_resident(void) {
  int fd = connect_resident();
  if (fd < 0) return;
  converse(fd);
  close(fd);
}
