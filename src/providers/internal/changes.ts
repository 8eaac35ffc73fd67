/** The options of a request while they are adapted to the model, with a report of each change. */
import type { Adjustment } from "../../ModelEvent.ts"
import type * as Json from "./json.ts"
import type { Question } from "./question.ts"

type Options = Question["options"]

/** The options to send, and their differences from those of the application. */
export class Changes {
  options: Options
  readonly adjusted: Array<Adjustment> = []

  constructor(options: Options) {
    this.options = options
  }

  report(option: string, asked: Json.Json | undefined, sent: Json.Json, reason: string): void {
    this.adjusted.push({ option, asked: asked ?? null, sent, reason })
  }

  leaveOut(option: keyof Options, reason: string): void {
    const { [option]: asked, ...rest } = this.options
    if (asked === undefined) return
    this.options = rest
    this.report(option, asked, null, reason)
  }

  set<Name extends "maxTokens" | "temperature">(option: Name, value: number, reason: string): void {
    const asked = this.options[option]
    this.options = { ...this.options, [option]: value }
    this.report(option, asked, value, reason)
  }
}
