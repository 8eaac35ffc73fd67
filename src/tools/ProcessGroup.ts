/**
 * A command with all that it starts: its process group.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Scope from "effect/Scope"
import type * as ChildProcess from "effect/process/ChildProcess"
import type * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"

/**
 * Starts the command and uses it. Afterwards ends its process group as the command's options say (`killSignal`,
 * `forceKillAfter`), and is done when no process of the group lives.
 *
 * A process that was killed stays in its group until its parent reads how it ended. The spawner waits for that, up to a
 * second; here it is not waited for. Where there is no `/proc` to tell by (macOS), it is.
 */
export const use = <A, E, R>(
  command: ChildProcess.Command,
  body: (handle: ChildProcessSpawner.ChildProcessHandle) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | PlatformError, R | ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem> =>
  Effect.acquireUseRelease(started(command), ({ handle }) => body(handle), ended)

interface Started {
  readonly handle: ChildProcessSpawner.ChildProcessHandle
  /** Ends the group when it is closed. */
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

/** Whether a process of the group lives. Says yes where it cannot tell. */
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
        // It ended after its name was read.
        Effect.orElseSucceed(() => false)
      ),
    { concurrency: 16 }
  )
  return lives.includes(true)
})

/** Linux: `pid (name) state parent group …`. The name may hold spaces and brackets. `Z` and `X` are states of the dead. */
const isLivingIn = (stat: string, group: number): boolean => {
  const [state, , own] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return Number(own) === group && state !== "Z" && state !== "X"
}
