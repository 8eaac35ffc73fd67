/**
 * The definition of a tool for the model.
 */
import { memoize } from "effect/Function"
import type { ToolDefinition } from "../Provider.ts"
import type * as Tool from "../Tool.ts"

/** Returns the same object for the same tool, since providers keep its encoding by object. */
export const of = memoize(
  ({ description, name, parameters, strict }: Tool.Any): ToolDefinition => ({
    name,
    description,
    parameters,
    ...(strict === undefined ? {} : { strict })
  })
)
