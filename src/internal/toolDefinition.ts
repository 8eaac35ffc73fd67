/**
 * The definition of a tool for the model.
 */
import { memoize } from "effect/Function"
import * as Struct from "effect/Struct"
import type { ToolDefinition } from "../Provider.ts"
import { given } from "../RunOptions.ts"
import type * as Tool from "../Tool.ts"

const members = [
  "name",
  "description",
  "parameters",
  "strict",
  "inputExamples",
  "allowedCallers",
  "vendor"
] as const

/** Returns the same object for the same tool, since providers keep its encoding by object. */
export const of = memoize((tool: Tool.Any): ToolDefinition => given(Struct.pick(tool, members), 1))
