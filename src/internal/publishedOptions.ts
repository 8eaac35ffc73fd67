/**
 * The options of a run as its `RunStart` has them.
 */
import * as Duration from "effect/Duration"
import * as Struct from "effect/Struct"
import type { Limits, RunOptions } from "../RunOptions.ts"

/**
 * Returns the options as plain data, with durations in milliseconds. Leaves out `system` and `modelOptions.vendor`: an
 * application may send events to its users, and both may hold secrets.
 */
export const published = (options: RunOptions): RunOptions => {
  const { approvalTimeout, hookTimeout, limits, modelOptions, toolTimeout } = options
  return {
    ...Struct.omit(options, ["system"]),
    ...(modelOptions === undefined ? {} : { modelOptions: Struct.omit(modelOptions, ["vendor"]) }),
    ...(limits === undefined ? {} : { limits: publishedLimits(limits) }),
    ...(toolTimeout === undefined ? {} : { toolTimeout: millis(toolTimeout) }),
    ...(hookTimeout === undefined ? {} : { hookTimeout: millis(hookTimeout) }),
    ...(approvalTimeout === undefined ? {} : { approvalTimeout: millis(approvalTimeout) })
  }
}

const publishedLimits = (limits: Limits): Limits =>
  limits.executionTime === undefined ? limits : { ...limits, executionTime: millis(limits.executionTime) }

const millis = (duration: Duration.Input): number | "Infinity" => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(duration))
  return Number.isFinite(millis) ? millis : "Infinity"
}
