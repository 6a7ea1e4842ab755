/*
Measures the CPU time that the threads of a Python process spend while they hold the GIL.

A profiling timer interrupts whichever thread is running, and the handler asks Python whether that thread holds the GIL.
So the result is a share of CPU time: it does not include waiting for the GIL, or for a disk. benchmarks/shapes.py loads
this file as a library into the process that it measures.
*/
#define _XOPEN_SOURCE 700 /* sigaction, setitimer */
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

int PyGILState_Check(void); /* of the Python that loads this library */
void gil_start(long microseconds);
long gil_held(void);
long gil_ticks(void);

static volatile sig_atomic_t held, ticks; /* one signal at a time: a process has one such timer */

static void on_tick(int signal) {
    (void)signal;
    ticks += 1;
    held += PyGILState_Check() != 0;
}

/* Begins to sample, once per so many microseconds of CPU time of the process. */
void gil_start(long microseconds) {
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = on_tick;
    sigaction(SIGPROF, &action, NULL);
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_PROF, &every, NULL);
}

/* The number of samples in which the interrupted thread held the GIL. */
long gil_held(void) { return held; }

/* The number of samples. */
long gil_ticks(void) { return ticks; }
