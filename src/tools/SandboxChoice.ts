/** The choice whether the commands of a tool run in a sandbox. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Sandbox from "./Sandbox.ts"

/** `none`: the system has no sandbox that works, and the commands run without. `off`: no sandbox is wanted. */
export type Choice = Sandbox.Kind | "none" | "off"

/** Makes an effect that chooses. It looks for the sandbox once, however often and by how many calls it runs. */
export const make = (mode: Sandbox.Mode, options: Sandbox.Options) => {
  const one = Semaphore.makeUnsafe(1)
  let found: Result.Result<Sandbox.Kind, Sandbox.SandboxUnavailable> | undefined
  const look = Effect.gen(function* () {
    if (found !== undefined) return found
    found = yield* Effect.result(Sandbox.probe(options))
    if (mode === "auto" && Result.isFailure(found))
      yield* Effect.logWarning(`The tool shell runs commands without a sandbox. ${found.failure.message}`)
    return found
  })
  const choice = Effect.flatMap(
    one.withPermits(1)(look),
    Result.match({
      onSuccess: (kind) => Effect.succeed<Choice>(kind),
      onFailure: (error) => (mode === "require" ? Effect.fail(error) : Effect.succeed<Choice>("none"))
    })
  )
  return mode === "off" ? Effect.succeed<Choice>("off") : choice
}
