// The process that holds a pod's namespaces: it sleeps, reaps orphans, and ends when it is told to.
// Built static into an image of its own; started by containerd as the first container of every pod.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal_number) { _exit(signal_number == SIGINT || signal_number == SIGTERM ? 0 : 1); }

static void reap(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction action = {.sa_handler = leave};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  action.sa_handler = reap;
  action.sa_flags = SA_NOCLDSTOP;
  sigaction(SIGCHLD, &action, NULL);
  for (;;) pause();
}
