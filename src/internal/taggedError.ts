/**
 * The class of our errors: a tagged error of Effect that Node prints as it prints other errors.
 */
import { NodeInspectSymbol } from "effect/Inspectable"
import * as Schema from "effect/Schema"

/** Has `console.error` print message and stack, then the fields. Effect has it print the fields alone. */
const printed = <Class>(made: Class): Class => {
  if (typeof made === "function")
    Reflect.defineProperty(made.prototype, NodeInspectSymbol, { value: undefined })
  return made
}

/** `Schema.TaggedError`, printed so. */
export const TaggedError =
  <Self>() =>
  <Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
    printed(Schema.TaggedError<Self>()(tag, fields))
