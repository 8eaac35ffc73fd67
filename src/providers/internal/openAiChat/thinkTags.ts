/**
 * Thinking that a server leaves in the text of an answer, between tags of the model: `<think>…</think>` at its start, or only a closing
 * tag where the prompt of the server had the opening one. A tag may come in any number of pieces.
 */
import type { ReplyWriter } from "../../../reply/ReplyWriter.ts"

/**
 * `lead`: there is no text yet. `think`: in the tags. `watch`: a text, of which a closing tag would make thinking. `off`: the rest is text.
 */
type State = "lead" | "think" | "watch" | "off"

export class ThinkTags {
  private readonly reply: ReplyWriter
  private state: State
  /** The start of what may be a tag, or white space before it. */
  private held = ""
  /** Whether thinking came before, so that white space behind it belongs to neither. */
  private hasThought = false
  /** Whether the tag of the thinking has just opened. */
  private isFresh = false

  constructor(reply: ReplyWriter, isOn: boolean) {
    this.reply = reply
    this.state = isOn ? "lead" : "off"
  }

  /** Writes a piece of the text. */
  write(delta: string): void {
    if (this.state === "off" || (this.state === "watch" && this.held === "" && !delta.includes("<")))
      return this.reply.text(delta)
    this.held += delta
    while (this.held !== "" && this.step()) continue
  }

  /** Writes what was held: something else follows, or nothing. */
  end(): void {
    const { held, state } = this
    if (state === "off") return
    this.held = ""
    this.state = "off"
    if (state === "think") this.reply.thinking(held)
    else this.reply.text(this.hasThought ? held.trimStart() : held)
  }

  /** Reads what is held. Returns whether there is more to read. */
  private step(): boolean {
    switch (this.state) {
      case "lead":
        return this.lead()
      case "think":
        if (this.isFresh) this.held = this.held.trimStart()
        this.isFresh = this.isFresh && this.held === ""
        return this.until(closing, "thinking", () => this.thought())
      case "watch":
        if (opening.test(this.held)) return this.rest()
        return this.until(lone, "text", (before) => this.closed(before))
      case "off":
        return this.rest()
    }
  }

  private lead(): boolean {
    const text = this.held.trimStart()
    const [tag] = leading.exec(text) ?? []
    if (tag !== undefined) {
      this.held = text.slice(tag.length).trimStart()
      this.hasThought = true
      this.isFresh = !tag.startsWith("</")
      if (this.isFresh) this.state = "think"
      return true
    }
    if (text === "" || tags.some((known) => known.startsWith(text.toLowerCase()))) return false
    if (this.hasThought) this.held = text
    // Another block before the text shows that the server knows thinking from text.
    this.state = this.hasThought || this.reply.length > 0 ? "off" : "watch"
    return true
  }

  /** Writes what stands before a tag, and all if there is none, but for what may be the start of one. */
  private until(tag: RegExp, kind: "text" | "thinking", found: (before: string) => boolean): boolean {
    const { held } = this
    const { 0: all = "", index } = tag.exec(held) ?? { index: -1 }
    if (index !== -1) {
      this.held = held.slice(index + all.length)
      const before = held.slice(0, index)
      if (found(before)) {
        if (kind === "thinking") this.reply.thinking(before)
        return true
      }
      this.reply.text(before + all)
      return true
    }
    const from = held.lastIndexOf("<")
    const isTag = from !== -1 && tags.some((known) => known.startsWith(held.slice(from).toLowerCase()))
    this.held = isTag ? held.slice(from) : ""
    this.reply[kind](isTag ? held.slice(0, from) : held)
    return false
  }

  private thought(): boolean {
    this.state = "lead"
    return true
  }

  /** Makes thinking of the text before a closing tag, unless the text is about the tag. */
  private closed(before: string): boolean {
    const { length, prose } = this.reply
    const text = `${prose?.text ?? ""}${before}`
    this.state = "off"
    if (length > 1 || /[\s`'"(]$/.test(text.replace(/\n+$/, "")) || text.split("```").length % 2 === 0)
      return false
    this.reply.restart()
    this.reply.thinking(text)
    this.hasThought = true
    this.state = "lead"
    return true
  }

  private rest(): boolean {
    this.state = "off"
    this.reply.text(this.held)
    this.held = ""
    return false
  }
}

const tags = ["think", "thinking", "mm:think", "seed:think"].flatMap((name) => [`<${name}>`, `</${name}>`])
const opening = /<(?:mm:|seed:)?think(?:ing)?>/i
const closing = /<\/(?:mm:|seed:)?think(?:ing)?>/i
const leading = /^<\/?(?:mm:|seed:)?think(?:ing)?>/i
const lone = /<\/(?:mm:|seed:)?think>/i
