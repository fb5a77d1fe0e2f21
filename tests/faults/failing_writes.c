/* Stands before the C library (LD_PRELOAD) and lets the nth call that changes a file of one folder
   fail: with an error, or by the end of the process. A write that fails has written half. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static int fails_at, with_error, calls; /* error 0: the process is killed */

void begin_failing(const char *where, int at, int error) {
    strncpy(folder, where, sizeof folder - 1);
    fails_at = at, with_error = error, calls = 0;
}

int calls_so_far(void) { return calls; }

static int is_path_inside(const char *path) {
    return folder[0] && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_inside(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = folder[0] ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0) return 0;
    path[length] = 0;
    return is_path_inside(path);
}

static int is_failing(void) {
    if (++calls != fails_at) return 0;
    if (with_error) errno = with_error;
    return 1;
}

static void die_if_wanted(void) {
    if (!with_error) kill(getpid(), SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILS(inside) ((inside) && is_failing() && (die_if_wanted(), 1))

#define WRITER(name, parameters, whole)                             \
    ssize_t name parameters {                                       \
        if (is_inside(fd) && is_failing()) {                        \
            int error = errno;                                      \
            (void)!REAL(name) whole(length / 2);                   \
            die_if_wanted();                                        \
            errno = error;                                          \
            return -1;                                              \
        }                                                           \
        return REAL(name) whole(length);                            \
    }
#define PLAIN(n) (fd, data, n)
#define PLACED(n) (fd, data, n, at)
WRITER(write, (int fd, const void *data, size_t length), PLAIN)
WRITER(pwrite, (int fd, const void *data, size_t length, off_t at), PLACED)
WRITER(pwrite64, (int fd, const void *data, size_t length, off64_t at), PLACED)

int fsync(int fd) { return FAILS(is_inside(fd)) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return FAILS(is_inside(fd)) ? -1 : REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t n) { return FAILS(is_inside(fd)) ? -1 : REAL(ftruncate)(fd, n); }
int ftruncate64(int fd, off64_t n) { return FAILS(is_inside(fd)) ? -1 : REAL(ftruncate64)(fd, n); }
int rename(const char *a, const char *b) { return FAILS(is_path_inside(b)) ? -1 : REAL(rename)(a, b); }
int unlink(const char *path) { return FAILS(is_path_inside(path)) ? -1 : REAL(unlink)(path); }
int mkdir(const char *path, mode_t mode) { return FAILS(is_path_inside(path)) ? -1 : REAL(mkdir)(path, mode); }

static int changes(int flags) { return flags & (O_WRONLY | O_RDWR | O_CREAT); }
#define OPENER(name)                                                        \
    int name(const char *path, int flags, ...) {                            \
        va_list rest;                                                       \
        va_start(rest, flags);                                              \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;           \
        va_end(rest);                                                       \
        if (changes(flags) && FAILS(is_path_inside(path))) return -1;       \
        return REAL(name)(path, flags, mode);                               \
    }
OPENER(open)
OPENER(open64)
