/**
 * The options of a run as its `RunStart` has them.
 */
import type * as Duration from "effect/Duration"
import * as Struct from "effect/Struct"
import { toJson } from "./durationInput.ts"
import type { RunOptions } from "../RunOptions.ts"

/**
 * Returns the options as plain data, with durations in milliseconds. Leaves out `system` and `modelOptions.vendor`: an
 * application may send events to its users, and both may hold secrets.
 */
export const published = (options: RunOptions): RunOptions =>
  Struct.evolve(Struct.omit(options, ["system"]), {
    modelOptions: (modelOptions = {}) => Struct.omit(modelOptions, ["vendor"]),
    limits: (limits = {}) => Struct.evolve(limits, { executionTime: millis }),
    toolTimeout: millis,
    hookTimeout: millis,
    approvalTimeout: millis
  })

// `evolve` gives it no absent member.
const millis = (duration: Duration.Input = 0) => toJson(duration)
