// The launcher of the PBS commands. It passes a command to the resident of its user (src/resident). If there is no resident, or the resident declines the
// command, the launcher replaces itself with Node.js, which runs the bundle of the command. This file decides what the circumstances of a resident are, where
// its socket is, and when a resident is started. The conversation with the resident is in conversation.c.
//
//   BASE/dist/pbs_launcher NAME ARGUMENT...    called by the scripts in bin/
//   PBS_EXEC/bin/NAME ARGUMENT...              this program under the name of the command; BASE is PBS_EXEC/lib/partita
//
// L1. A resident serves only commands with the same circumstances as its own: ids, groups, capabilities, umask, namespaces, root directory, host name, time
//     zone, build.
// L2. If real and effective ids differ, no resident is used, and no file is made or changed.

#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROTOCOL "partita-resident 1"
#define CONF_FILE_DEFAULT "/etc/pbs.conf"
enum { CONF_BYTES_MAX = 1 << 16, AFTER_S_DEFAULT = 60, SETTING_MAX = 86400000, NOT_INSTALLED = 127, OF_PROCESS_MAX = 64 };

char name[64], cwd[PATH_MAX], circumstances[1 << 14], socket_path[PATH_MAX];
char **arguments;
static char base[PATH_MAX], node[PATH_MAX + 32], bundle[PATH_MAX + 96], conf[CONF_BYTES_MAX + 1], mark_path[PATH_MAX];
static size_t circumstances_bytes;

// --- texts

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

bool format(char *to, size_t room, const char *how, ...) {
  va_list list;
  va_start(list, how);
  int bytes = vsnprintf(to, room, how, list);
  va_end(list);
  return bytes >= 0 && (size_t)bytes < room;
}

static bool __attribute__((format(printf, 1, 2))) circumstance(const char *how, ...) {
  va_list list;
  va_start(list, how);
  size_t room = sizeof circumstances - circumstances_bytes;
  int bytes = vsnprintf(circumstances + circumstances_bytes, room, how, list);
  va_end(list);
  if (bytes < 0 || (size_t)bytes >= room) return false;
  circumstances_bytes += (size_t)bytes;
  return true;
}

// --- the command without a resident

static void __attribute__((noreturn)) run_here(void) {
  if (access(node, X_OK) != 0 || access(bundle, F_OK) != 0) {
    dprintf(2, "%s: not installed yet: run 'npm run build' in %s\n", name, base);
    exit(NOT_INSTALLED);
  }
  size_t count = 0;
  while (arguments[count] != NULL) count++;
  char **words = calloc(count + 4, sizeof *words);
  if (words != NULL) {
    words[0] = node;
    words[1] = "--no-warnings"; // warnings of Node.js on stderr would disturb programs that read the output of commands
    words[2] = bundle;
    memcpy(words + 3, arguments, count * sizeof *words);
    execv(node, words);
  }
  dprintf(2, "%s: %s: %s\n", name, node, strerror(errno));
  exit(NOT_INSTALLED);
}

// --- settings: of the environment or, if a variable is not set there, of pbs.conf, which is read as in src/support/conf.ts

static void read_conf(void) {
  const char *named = getenv("PBS_CONF_FILE");
  int fd = open(named != NULL && *named != '\0' ? named : CONF_FILE_DEFAULT, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  struct stat about;
  ssize_t bytes = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) ? read(fd, conf, CONF_BYTES_MAX) : 0;
  conf[bytes > 0 ? bytes : 0] = '\0';
  close(fd);
}

// Sets `value` to the value of a setting; "" if there is none, or if it does not fit into `room` bytes.
static void setting(const char *key, char *value, size_t room) {
  const char *own = getenv(key);
  *value = '\0';
  if (own != NULL && *own != '\0') {
    if (!format(value, room, "%s", own)) *value = '\0';
    return;
  }
  for (const char *line = conf; line != NULL && *line != '\0'; line = strchr(line, '\n'), line = line == NULL ? NULL : line + 1) {
    line += strspn(line, " \t\r");
    if (begins(line, "export") && (line[6] == ' ' || line[6] == '\t')) line += 6 + strspn(line + 6, " \t");
    if (!begins(line, key)) continue;
    const char *at = line + strlen(key);
    at += strspn(at, " \t");
    if (*at++ != '=') continue;
    at += strspn(at, " \t");
    size_t bytes = strcspn(at, "\n");
    while (bytes > 0 && strchr(" \t\r", at[bytes - 1]) != NULL) bytes--;
    if (bytes >= 2 && (*at == '"' || *at == '\'') && at[bytes - 1] == *at) at++, bytes -= 2;
    if (!format(value, room, "%.*s", (int)bytes, at)) *value = '\0';
  }
}

int64_t number_setting(const char *key, int64_t otherwise) {
  char value[32], *end;
  setting(key, value, sizeof value);
  long long number = strtoll(value, &end, 10);
  return *value == '\0' || *end != '\0' || number < 0 || number > SETTING_MAX ? otherwise : number;
}

// --- circumstances (L1)

static bool add_file(const char *path) {
  struct stat about;
  if (stat(path, &about) != 0) return circumstance("%s none\n", path);
  return circumstance("%s %llu %llu %lld %lld.%09ld\n", path, (unsigned long long)about.st_dev, (unsigned long long)about.st_ino,
                      (long long)about.st_size, (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
}

// Adds ids, groups, capabilities, umask and confinement, as the kernel reports them.
static bool add_status(void) {
  static const char *const wanted[] = {"Umask:", "Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp"};
  static char text[8192];
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t bytes = read(fd, text, sizeof text - 1);
  close(fd);
  if (bytes <= 0 || bytes == (ssize_t)sizeof text - 1) return false;
  text[bytes] = '\0';
  char *rest = NULL;
  for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
      if (begins(line, wanted[i]) && !circumstance("%s\n", line)) return false;
  return true;
}

static bool add_namespaces(void) {
  static const char *const spaces[] = {"mnt", "net", "uts", "user", "pid"};
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
    char path[32], target[64];
    if (!format(path, sizeof path, "/proc/self/ns/%s", spaces[i])) return false;
    ssize_t bytes = readlink(path, target, sizeof target);
    if (bytes <= 0 || !circumstance("%.*s\n", (int)bytes, target)) return false;
  }
  return true;
}

// Returns whether Node.js or the C library reads this variable from the environment of the process. A resident cannot change such a variable for one command,
// so these variables are circumstances, and the environment of the resident consists of them.
static bool is_of_process(const char *variable) {
  static const char *const of_process[] = {"TZ=", "TZDIR=", "NODE_", "LD_", "UV_", "GLIBC_", "MALLOC_", "OPENSSL_", "SSL_", "RES_OPTIONS=", "LOCALDOMAIN=", "HOSTALIASES="};
  for (size_t i = 0; i < sizeof of_process / sizeof *of_process; i++)
    if (begins(variable, of_process[i])) return true;
  return false;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// Adds the variables for which is_of_process() is true, sorted, because a shell may pass the same variables in another order.
static bool add_variables(void) {
  char *found[OF_PROCESS_MAX];
  size_t count = 0;
  for (char **variable = environ; *variable != NULL; variable++) {
    if (!is_of_process(*variable)) continue;
    if (count == OF_PROCESS_MAX) return false;
    found[count++] = *variable;
  }
  qsort(found, count, sizeof *found, by_text);
  for (size_t i = 0; i < count; i++)
    if (!circumstance("%s\n", found[i])) return false;
  return true;
}

static bool add_circumstances(void) {
  struct utsname host;
  struct stat root;
  if (uname(&host) != 0 || stat("/", &root) != 0) return false;
  if (!circumstance("%s\n%s\n%llu %llu\n", PROTOCOL, host.nodename, (unsigned long long)root.st_dev, (unsigned long long)root.st_ino)) return false;
  char resident[PATH_MAX + 32];
  if (!format(resident, sizeof resident, "%s/dist/pbs_resident.mjs", base)) return false;
  if (!add_file(node) || !add_file(resident) || !add_file("/etc/localtime") || !add_status() || !add_namespaces()) return false;
  return add_variables();
}

// Returns the FNV-1a hash. Two circumstances with the same hash do no harm, because the resident compares the whole text.
static uint64_t hash(const char *bytes, size_t count) {
  uint64_t value = 0xcbf29ce484222325u;
  for (size_t i = 0; i < count; i++) value = (value ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return value;
}

// --- the directory of the sockets: if others than this user have access to it, no resident is used

static bool is_ours_alone(const char *path) {
  struct stat about;
  return lstat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & 077) == 0;
}

static bool find_paths(void) {
  char directory[PATH_MAX];
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  bool has_own = runtime != NULL && *runtime == '/' && is_ours_alone(runtime);
  if (!(has_own ? format(directory, sizeof directory, "%s/partita", runtime)
                : format(directory, sizeof directory, "/tmp/partita-%lu", (unsigned long)geteuid())))
    return false;
  if (mkdir(directory, 0700) != 0 && errno != EEXIST) return false;
  if (!is_ours_alone(directory)) return false;
  unsigned long long id = hash(circumstances, circumstances_bytes);
  return format(socket_path, sizeof ((struct sockaddr_un *)0)->sun_path, "%s/%016llx.sock", directory, id) &&
         format(mark_path, sizeof mark_path, "%s/%016llx.mark", directory, id);
}

// --- starting a resident

static void __attribute__((noreturn)) become_resident(int mark) {
  static char told[sizeof circumstances + 32], conf_file[PATH_MAX + 32];
  static const char *const settings[] = {"PARTITA_RESIDENT_IDLE", "PARTITA_RESIDENT_COMMANDS", "PARTITA_RESIDENT_MEMORY", "PARTITA_RESIDENT_AT_ONCE"};
  static char limits[sizeof settings / sizeof *settings][64];
  size_t count = 0;
  for (char **variable = environ; *variable != NULL; variable++) count++;
  char **environment = calloc(count + 3 + sizeof settings / sizeof *settings, sizeof *environment);
  if (environment == NULL || !format(told, sizeof told, "PARTITA_CIRCUMSTANCES=%s", circumstances)) _exit(1);
  size_t kept = 0;
  environment[kept++] = told;
  for (char **variable = environ; *variable != NULL; variable++)
    if (is_of_process(*variable)) environment[kept++] = *variable;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    char value[32];
    setting(settings[i], value, sizeof value);
    if (*value != '\0' && format(limits[i], sizeof limits[i], "%s=%s", settings[i], value)) environment[kept++] = limits[i];
  }
  if (!format(conf_file, sizeof conf_file, "%s/dist/pbs_resident.mjs", base)) _exit(1);
  int null = open("/dev/null", O_RDWR);
  if (null < 0 || chdir("/") != 0) _exit(1);
  // The resident inherits the lock of the mark with the descriptor, and holds it until it ends.
  int lock = mark == 3 ? 3 : dup2(mark, 3);
  if (lock != 3 || fcntl(3, F_SETFD, 0) != 0) _exit(1);
  for (int fd = 0; fd < 3; fd++)
    if (dup2(null, fd) != fd) _exit(1);
  if (syscall(SYS_close_range, 4u, ~0u, 0u) != 0)
    for (int fd = 4; fd < sysconf(_SC_OPEN_MAX); fd++) close(fd);
  for (int each = 1; each < 32; each++) signal(each, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  char *words[] = {"pbs_resident", "--no-warnings", conf_file, socket_path, mark_path, NULL};
  execve(node, words, environment);
  _exit(1);
}

// The second command within a minute starts a resident for later commands, and itself runs without one. Inside a job no resident is started, because it would belong
// to the job. The mark is a file whose modification time is that of the last command without a resident. When a resident is started, this time is set to a moment in
// the future. If the start fails, no command repeats it before that moment.
void maybe_start(void) {
  if (getenv("PBS_JOBID") != NULL || getenv("PBS_ENVIRONMENT") != NULL) return;
  int mark = open(mark_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (mark < 0) {
    mark = errno == ENOENT ? open(mark_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (mark >= 0) close(mark);
    return;
  }
  struct stat about;
  struct timespec now;
  int64_t after_s = number_setting("PARTITA_RESIDENT_AFTER", AFTER_S_DEFAULT);
  // A process that holds the lock is a resident, or is starting one.
  if (flock(mark, LOCK_EX | LOCK_NB) == 0 && fstat(mark, &about) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0) {
    int64_t age_s = (int64_t)now.tv_sec - about.st_mtim.tv_sec;
    bool start = age_s >= 0 && age_s <= after_s;
    struct timespec times[2] = {now, now};
    if (start) times[1].tv_sec += (time_t)after_s + 1;
    if (age_s >= 0 && futimens(mark, times) == 0 && start) {
      pid_t child = fork();
      if (child == 0) {
        setsid();
        if (fork() == 0) become_resident(mark);
        _exit(0);
      }
      if (child > 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
  }
  close(mark);
}

static void try_resident(void) {
  char wish[8];
  setting("PARTITA_RESIDENT", wish, sizeof wish);
  if (strcmp(wish, "no") == 0 || getuid() != geteuid() || getgid() != getegid() || getauxval(AT_SECURE) != 0) return;
  // If the working directory has no absolute path, a resident cannot use it.
  if (getcwd(cwd, sizeof cwd) == NULL || *cwd != '/' || !add_circumstances() || !find_paths()) return;
  run_by_resident();
}

// --- the command, and the directory of the programs

// Sets name, arguments, base, node and bundle. This program is BASE/dist/pbs_launcher, or PBS_EXEC/bin/NAME, where BASE is PBS_EXEC/lib/partita.
static bool locate(int count, char **words) {
  char self[PATH_MAX];
  ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);
  if (bytes > 0) self[bytes] = '\0';
  else if (realpath((const char *)getauxval(AT_EXECFN), self) == NULL) return false;
  char *file = strrchr(self, '/');
  if (file == NULL || file == self) return false;
  *file++ = '\0';
  char *deleted = strstr(file, " (deleted)"); // an update has replaced the file since this process was started
  if (deleted != NULL) *deleted = '\0';
  bool named = !begins(file, "pbs_launcher"); // the file name of a launcher that is being built begins in the same way
  if (!named && count < 2) return false;
  arguments = words + (named ? 1 : 2);
  char *folder = strrchr(self, '/');
  if (folder == NULL) return false;
  *folder = '\0';
  const char *called = named ? file : words[1];
  return strchr(called, '/') == NULL && format(name, sizeof name, "%s", called) &&
         format(base, sizeof base, named ? "%s/lib/partita" : "%s", self) && format(node, sizeof node, "%s/node_modules/node/bin/node", base) &&
         format(bundle, sizeof bundle, "%s/dist/%s.cjs", base, name);
}

int main(int count, char **words) {
  // As Node.js does, opens closed standard streams on /dev/null. Otherwise the next file that is opened would become a standard stream.
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd) return NOT_INSTALLED;
  if (!locate(count, words)) {
    dprintf(2, "pbs_launcher: usage: pbs_launcher COMMAND [ARGUMENT...]\n");
    return NOT_INSTALLED;
  }
  read_conf();
  try_resident();
  run_here();
}
