// Declarations that both files of the launcher use: launcher.c and conversation.c.

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The command's name, its working directory, the circumstances of this process (src/resident/README.md), and the socket of the resident for these
 * circumstances; the command's arguments, ended by NULL, and its environment.
 */
extern char name[64], cwd[4096], circumstances[1 << 14], socket_path[4096];
extern char **arguments, **environ;

/** Does the same as snprintf, but returns whether the whole text fits into `room` bytes. */
bool format(char *to, size_t room, const char *how, ...) __attribute__((format(printf, 3, 4)));
/** Returns a setting of the environment or of pbs.conf as a whole number; `otherwise` if it is missing, negative, too large or no number. */
int64_t number_setting(const char *key, int64_t otherwise);
/** Notes that a command runs without a resident. Starts a resident if another command did so in the minute before (PARTITA_RESIDENT_AFTER). */
void maybe_start(void);

/**
 * Lets the resident run the command, and ends this process with the status of the command. Returns only if this process must run the command itself; the
 * resident has then done nothing of it.
 */
void run_by_resident(void);
