/**
 * The changes of a JSON value that grows.
 */
import * as Schema from "effect/Schema"

const path = { path: Schema.Array(Schema.Union([Schema.String, Schema.Int])) }

/**
 * A change of a value that grows.
 *
 * **Details**
 *
 * `path` has the names of members and the indexes of elements that lead to the place of the change, from the outermost one; the whole value
 * has the empty path. `set` is the value at that place, which may grow further. `append` is more text of the string at that place.
 *
 * @category models
 * @since 0.2.0
 */
export const Change = Schema.Union([
  Schema.Struct({ ...path, set: Schema.Json }),
  Schema.Struct({ ...path, append: Schema.String })
])
export type Change = typeof Change.Type
