/**
 * JSON values that grow while a model writes them: the arguments of a tool call, and the typed output of a run.
 *
 * **Details**
 *
 * Runs with the option `partialValues` emit `PartialValue` events, which have the changes.
 *
 * @since 0.2.0
 */
import type * as Schema from "effect/Schema"
import type { Change } from "./internal/valueChange.ts"
import { ValueDraft } from "./internal/valueDraft.ts"

export { Change } from "./internal/valueChange.ts"

/**
 * Returns a value after changes.
 *
 * **Details**
 *
 * `value` is `undefined` before the first change. The function is pure, and ignores a change whose path does not lead into the value.
 *
 * **Gotchas**
 *
 * Each call copies the containers that it changes. Use `AgentEvent.partials` for long values of many pieces.
 *
 * **Example** (Following the arguments of a call)
 *
 * ```ts
 * import { PartialValue } from "effect-agent"
 *
 * const first = PartialValue.fold(undefined, [{ path: [], set: { path: "src/in" } }])
 * const second = PartialValue.fold(first, [{ path: ["path"], append: "dex.ts" }])
 *
 * console.log(second) // => { path: 'src/index.ts' }
 * ```
 *
 * @category folding
 * @since 0.2.0
 */
export const fold = (
  value: Schema.Json | undefined,
  changes: ReadonlyArray<Change>
): Schema.Json | undefined => {
  const draft = new ValueDraft(value)
  draft.add(changes)
  return draft.take()
}
