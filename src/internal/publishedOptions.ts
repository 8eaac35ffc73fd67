/**
 * The options of a run as its `RunStart` has them.
 */
import type * as Duration from "effect/Duration"
import * as Struct from "effect/Struct"
import { toJson } from "./durationInput.ts"
import type { HostedToolDefinition, ModelOptions, RunOptions } from "../RunOptions.ts"

/**
 * Returns the options as plain data, with durations in milliseconds. Leaves out `system`, `headers`, and `vendor` of the model
 * options and of hosted tools: an application may send events to its users, and they may hold secrets.
 */
export const published = (options: RunOptions): RunOptions =>
  Struct.evolve(Struct.omit(options, ["system"]), {
    modelOptions: (modelOptions = {}) => ofCall(modelOptions),
    limits: (limits = {}) => Struct.evolve(limits, { executionTime: millis }),
    toolTimeout: millis,
    hookTimeout: millis,
    approvalTimeout: millis
  })

/** The options of a model call, without those that may hold secrets. */
export const ofCall = (options: ModelOptions): ModelOptions =>
  Struct.evolve(Struct.omit(options, ["headers", "vendor"]), {
    hostedTools: (tools = []) => tools.map(withoutVendor)
  })

const withoutVendor = (tool: HostedToolDefinition): HostedToolDefinition => {
  const { vendor: _, ...rest } = tool
  return rest
}

// `evolve` gives it no absent member.
const millis = (duration: Duration.Input = 0) => toJson(duration)
