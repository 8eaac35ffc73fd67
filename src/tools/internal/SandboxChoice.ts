/** The choice whether the commands of a tool run in a sandbox. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Sandbox from "../Sandbox.ts"

/** `none`: the system has no sandbox that works, and the commands run without. `off`: no sandbox is wanted. */
export type Choice = Sandbox.Kind | "none" | "off"

/** Makes an effect that chooses. It looks for the sandbox once, however often and by how many calls it runs. */
export const make = (mode: Sandbox.Mode, options: Sandbox.Options) => {
  const one = Semaphore.makeUnsafe(1)
  let found: Result.Result<Sandbox.Kind, Sandbox.SandboxUnavailable> | undefined
  const look = Effect.gen(function* () {
    if (found !== undefined) return found
    const result = yield* Effect.result(Sandbox.probe(options))
    const files = yield* FileSystem.FileSystem
    // No sandbox starts without its root, which may be made later, and a search that failed may succeed later.
    const isUnknown = Result.isFailure(result) && result.failure.isUnknown === true
    if (isUnknown || !(yield* Effect.orElseSucceed(files.exists(options.root), () => false))) return result
    found = result
    if (mode === "auto" && Result.isFailure(result))
      yield* Effect.logWarning(`The tool shell runs commands without a sandbox. ${result.failure.message}`)
    return result
  })
  const choice = Effect.flatMap(
    one.withPermits(1)(look),
    Result.match({
      onSuccess: (kind) => Effect.succeed<Choice>(kind),
      onFailure: (error) =>
        mode === "require" || error.isUnknown === true ? Effect.fail(error) : Effect.succeed<Choice>("none")
    })
  )
  return mode === "off" ? Effect.succeed<Choice>("off") : choice
}
