/**
 * A change of the views of a manager, which leaves the rest of the manager as it is.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ContextManager, type View } from "../../ContextManager.ts"
import * as Tokens from "../Tokens.ts"

/** Makes a layer that changes each view of the manager that it is provided with. */
export const layer = (change: (view: View, tokens: Tokens.Service) => View): Layer.Layer<never> =>
  Layer.effect(
    ContextManager,
    Effect.gen(function* () {
      const inner = yield* ContextManager
      const tokens = yield* Tokens.Tokens
      return {
        ...inner,
        view: (messages, options) => Effect.map(inner.view(messages, options), (view) => change(view, tokens))
      }
    })
  )
