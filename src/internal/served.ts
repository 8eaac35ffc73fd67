/** The services of the runs of an agent that a server keeps: its own, whoever asks for them. */
import * as Context from "effect/Context"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import { Credentials } from "../Credentials.ts"
import { ToolContext } from "./toolContext.ts"

/**
 * Whether the runs of an agent take none of the services of their callers. Read when the agent is made. A request of a server has
 * services of its own, such as a file system without files, which must not hide those of the application.
 */
export const Served = Context.Reference<boolean>("effect-agent/Served", { defaultValue: () => false })

/** What says who asks: a run, a call, a span, keys, and the settings of a log. */
export const asking = Context.pick(
  // By its key, since its module needs this one.
  Context.Service<unknown>("effect-agent/Run"),
  ToolContext,
  Credentials,
  Tracer.ParentSpan,
  References.CurrentLogAnnotations,
  References.CurrentLogSpans,
  References.MinimumLogLevel
)
