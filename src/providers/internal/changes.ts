/** The options of a request while they are adapted to the model, with a report of each change. */
import type { Adjustment } from "../../ModelEvent.ts"
import type * as Json from "./json.ts"
import type { Question } from "./question.ts"

type Options = Question["options"]

/**
 * The options to send, and their differences from those of the application.
 *
 * @since 0.2.0
 * @category models
 */
export class Changes {
  /** The options to send. */
  options: Options
  /** The differences, as `ModelCallEnd.adjusted` reports them. */
  readonly adjusted: Array<Adjustment> = []

  constructor(options: Options) {
    this.options = options
  }

  /** Reports that the request has another value than the application gave, or none. */
  report(option: string, asked: Json.Json | undefined, sent: Json.Json, reason: string): void {
    this.adjusted.push({ option, asked: asked ?? null, sent, reason })
  }

  /** Leaves an option out, and reports it if the application gave it. */
  leaveOut(option: keyof Options, reason: string): void {
    const { [option]: asked, ...rest } = this.options
    if (asked === undefined) return
    this.options = rest
    this.report(option, asked, null, reason)
  }

  /** Keeps the hosted tools of these types, and reports each other one. */
  keepHostedTools(types: ReadonlyArray<string>, reason: string): void {
    const { hostedTools: asked = [], ...rest } = this.options
    const hostedTools = asked.filter(({ type }) => types.includes(type))
    if (hostedTools.length === asked.length) return
    this.options = hostedTools.length === 0 ? rest : { ...rest, hostedTools }
    for (const { type } of asked) {
      if (!types.includes(type)) this.report("hostedTools", type, null, reason)
    }
  }

  /** Sends another value of an option. */
  set<Name extends "logprobs" | "maxTokens" | "temperature">(
    option: Name,
    value: number,
    reason: string
  ): void {
    const asked = this.options[option]
    this.options = { ...this.options, [option]: value }
    this.report(option, asked, value, reason)
  }
}
