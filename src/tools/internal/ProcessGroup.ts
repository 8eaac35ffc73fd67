/** Runs a command and ends it together with all processes that it started: its process group. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Scope from "effect/Scope"
import type * as ChildProcess from "effect/process/ChildProcess"
import type * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"

/**
 * Starts the command and runs `body`. Afterwards ends its process group as the options of the command specify
 * (`killSignal`, `forceKillAfter`), and completes when no process of the group lives. A killed process stays in
 * its group until its parent reads its exit status. The spawner waits up to a second for that, this function
 * does not, unless the system has no `/proc` to inspect (macOS).
 */
export const use = <A, E, R>(
  command: ChildProcess.Command,
  body: (handle: ChildProcessSpawner.ChildProcessHandle) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | PlatformError, R | ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem> =>
  Effect.acquireUseRelease(started(command), ({ handle }) => body(handle), ended)

interface Started {
  readonly handle: ChildProcessSpawner.ChildProcessHandle
  /** Closing it ends the group. */
  readonly scope: Scope.Closeable
}

const started = Effect.fnUntraced(function* (command: ChildProcess.Command) {
  const scope = yield* Scope.make()
  const handle = yield* command.pipe(
    Scope.provide(scope),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
  return { handle, scope } satisfies Started
})

const ended = Effect.fnUntraced(function* <A, E>({ handle, scope }: Started, exit: Exit.Exit<A, E>) {
  const closing = yield* Effect.forkDetach(Scope.close(scope, exit), { startImmediately: true })
  yield* Effect.raceFirst(Fiber.await(closing), Effect.interruptible(allDead(handle)))
})

/** Waits until the leader has ended and no other process of its group lives. */
const allDead = Effect.fnUntraced(function* (handle: ChildProcessSpawner.ChildProcessHandle) {
  while (true) {
    yield* Effect.sleep("10 millis")
    const isLed = yield* Effect.orElseSucceed(handle.isRunning, () => true)
    if (!isLed && !(yield* hasLiving(handle.pid))) return
  }
})

/** Whether a process of the group lives. `true` if the system does not provide the information. */
const hasLiving = Effect.fnUntraced(function* (group: number) {
  const files = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(files.readDirectory("/proc"), (): Array<string> => [])
  const pids = names.filter((name) => /^\d+$/.test(name))
  if (pids.length === 0) return true
  const lives = yield* Effect.forEach(
    pids,
    (pid) =>
      files.readFileString(`/proc/${pid}/stat`).pipe(
        Effect.map((stat) => isLivingIn(stat, group)),
        // The process ended after its name was read.
        Effect.orElseSucceed(() => false)
      ),
    { concurrency: 16 }
  )
  return lives.includes(true)
})

/**
 * Linux: `pid (name) state parent group …`. The name may contain spaces and brackets. `Z` and `X` are the
 * states of dead processes.
 */
const isLivingIn = (stat: string, group: number): boolean => {
  const [state, , own] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return Number(own) === group && state !== "Z" && state !== "X"
}
