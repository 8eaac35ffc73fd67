/**
 * A lock for each file, by real path, for the whole process. Tools of one turn run in parallel, and without the
 * lock two edits of one file would each overwrite the change of the other.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"

interface Lock {
  readonly semaphore: Semaphore.Semaphore
  users: number
}

const locks = new Map<string, Lock>()

/** Runs the effect while no other effect of this process holds the lock of `path`. */
export const withLock =
  (path: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => enter(path)),
      (lock) => lock.semaphore.withPermit(effect),
      (lock) => Effect.sync(() => leave(path, lock))
    )

const enter = (path: string): Lock => {
  const lock = locks.get(path) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
  lock.users++
  locks.set(path, lock)
  return lock
}

const leave = (path: string, lock: Lock): void => {
  lock.users--
  if (lock.users === 0) locks.delete(path)
}
