/**
 * The processes of this machine, each by its id and its start: a later process may have the id, and has another start.
 *
 * On Linux both come from `/proc`. Elsewhere the runtime says whether a process lives, and its start is not known.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"

export interface Process {
  readonly pid: number
  /** The boot of the machine and the ticks since then, `""` if it is not known. */
  readonly start: string
}

/** Reads the process from a line of `/proc`. A process that ended and that its parent has not noticed yet does not live. */
const parse = (stat: string, boot: string): Process | undefined => {
  // The name, in parentheses, may have spaces and parentheses.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const [pid, ticks] = [Number.parseInt(stat, 10), fields[18]]
  const isOver = state === "Z" || state === "X" || ticks === undefined || Number.isNaN(pid)
  return isOver ? undefined : { pid, start: `${boot}/${ticks}` }
}

const read = (name: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const boot = yield* files.readFileString("/proc/sys/kernel/random/boot_id")
    return parse(yield* files.readFileString(`/proc/${name}/stat`), boot.trim())
  })

/** This process. */
export const self: Effect.Effect<Process, never, FileSystem.FileSystem> = read("self").pipe(
  Effect.orElseSucceed(() => undefined),
  Effect.map((found) => found ?? { pid: globalThis.process?.pid ?? 0, start: "" })
)

/** Returns whether a process lives, and is the one that had this start, where that is known. */
export const lives = ({ pid, start }: Process): Effect.Effect<boolean, never, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const isListed = yield* Effect.orElseSucceed(files.exists("/proc/self/stat"), () => false)
    if (!isListed) return yield* answers(pid)
    const found = yield* Effect.orElseSucceed(read(String(pid)), () => undefined)
    return found !== undefined && (start === "" || found.start === start)
  })

/** Whether the system knows a process. One that it may not signal lives too. */
const answers = (pid: number): Effect.Effect<boolean> =>
  Effect.match(
    Effect.try(() => globalThis.process?.kill(pid, 0)),
    {
      onSuccess: () => true,
      onFailure: ({ cause }) => !(cause instanceof Error && "code" in cause && cause.code === "ESRCH")
    }
  )
