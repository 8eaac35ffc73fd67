/** Details of thinking that OpenRouter and similar gateways require back, such as signatures. */
import * as Json from "../json.ts"
import type { Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"

export class Details {
  private readonly reply: ReplyWriter
  private block: Prose | undefined = undefined
  /** The details of `block`. */
  private found: Array<Map<string, Json.Json>> = []

  constructor(reply: ReplyWriter) {
    this.reply = reply
  }

  /** Adds a detail, or a piece of one, to the open block of thinking. Returns its text, `undefined` if it has none. */
  add(detail: Json.JsonObject): string | undefined {
    const block = this.reply.block("thinking")
    if (block !== this.block) {
      const found: Array<Map<string, Json.Json>> = []
      this.block = block
      this.found = found
      block.keepAtEnd(() => ({ reasoningDetails: found.map((detail) => Object.fromEntries(detail)) }))
    }
    this.join(detail)
    return Json.text(detail["text"]) ?? Json.text(detail["summary"])
  }

  /** The pieces of one detail are consecutive. A signature comes in the last piece. */
  private join(detail: Json.JsonObject): void {
    const last = this.found.at(-1)
    const isPiece = detail["type"] === "reasoning.text" || detail["type"] === "reasoning.summary"
    const isSame = last?.get("type") === detail["type"] && last?.get("index") === detail["index"]
    if (last === undefined || !isPiece || !isSame) {
      this.found.push(new Map(Object.entries(detail)))
      return
    }
    for (const [key, value] of Object.entries(detail)) {
      const before = key === "text" || key === "summary" ? last.get(key) : undefined
      if (value === null || value === "") continue
      last.set(key, typeof before === "string" && typeof value === "string" ? before + value : value)
    }
  }
}
