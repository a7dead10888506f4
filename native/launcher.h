// What the two halves of the launcher share: who and where we are (launcher.c), and the talk with a resident (conversation.c).

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A command's name, its directory and arguments (ending with NULL), the circumstances it is run in, and the socket of the resident for those. */
extern char name[64], cwd[4096], circumstances[1 << 14], socket_path[4096];
extern char **arguments, **environ;

/** As snprintf; false when it did not fit. */
bool format(char *to, size_t room, const char *how, ...) __attribute__((format(printf, 3, 4)));
/** A whole number of the environment or of pbs.conf; `otherwise` when there is none that makes sense. */
int64_t number_setting(const char *key, int64_t otherwise);
/** Notes that a command was run without a resident, and starts one when it is the second within a minute. */
void maybe_start(void);

/** Has the command run by the resident and ends the process with its status. Returns when it is to be run here, and then nothing of it has been done. */
void run_by_resident(void);
