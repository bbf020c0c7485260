/* A wall clock that is wrong: the real one plus the seconds in the file that WALL_CLOCK_OFFSET names, read at each look. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, clock, now);
    const char *path = getenv("WALL_CLOCK_OFFSET");
    if (failed || clock != CLOCK_REALTIME || !path)
        return (int)failed;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    char text[32] = {0};
    if (read(file, text, sizeof text - 1) > 0)
        now->tv_sec += atol(text);
    close(file);
    return 0;
}
