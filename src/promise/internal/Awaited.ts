/**
 * Functions of the application, which may be async, as effects.
 */
import * as Effect from "effect/Effect"
import * as FailureText from "../../internal/failureText.ts"
import { PromiseRejected } from "../../Tool.ts"

/** Calls a function and waits for its promise. Interruption aborts the signal of the function. */
export const call = <A>(
  run: (signal: AbortSignal) => A | PromiseLike<A>
): Effect.Effect<A, PromiseRejected> =>
  Effect.tryPromise({
    try: async (signal) => run(signal),
    catch: (thrown) => new PromiseRejected({ detail: FailureText.of(thrown), thrown })
  })
