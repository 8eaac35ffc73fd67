/** The services of the runs of an agent that a server keeps: its own, and none of a request. */
import * as Context from "effect/Context"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import { ToolContext } from "./toolContext.ts"

/**
 * Whether the runs of an agent take none of the services of their callers. Read when the agent is made. A request of a server has
 * services of its own, such as a file system without files, which must not hide those of the application.
 */
export const Served = Context.Reference<boolean>("effect-agent/Served", { defaultValue: () => false })

/** The services of a caller that runs always take: its run, its call, its span, and the settings of its log. */
export const asking = Context.pick(
  // By its key, since its module needs this one.
  Context.Service<unknown>("effect-agent/Run"),
  ToolContext,
  Tracer.ParentSpan,
  References.CurrentLogAnnotations,
  References.CurrentLogSpans,
  References.MinimumLogLevel
)
