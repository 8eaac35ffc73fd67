/**
 * The blocks of an answer by Converse while they grow. The server announces calls and images, and begins a text or a thought
 * with its first piece.
 */
import * as Json from "../json.ts"
import type { CallBlock, HostedBlock, Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { typeOf } from "./media.ts"

type Block =
  | { readonly kind: "prose"; readonly prose: Prose }
  | { readonly kind: "call"; readonly call: CallBlock }
  /** A tool that the vendor runs: its call, or its result. */
  | { readonly kind: "hosted"; readonly hosted: HostedBlock; readonly start: Json.JsonObject; json: string }
  | {
      readonly kind: "result"
      readonly hosted: HostedBlock
      readonly start: Json.JsonObject
      readonly results: Array<Json.Json>
    }
  | { readonly kind: "image"; readonly mediaType: string; data: string; error?: Json.JsonObject | undefined }

export class Blocks {
  private readonly reply: ReplyWriter
  private readonly open = new Map<number, Block>()
  private readonly ended = new Set<number>()
  /** The names of the vendor's tools by the ids of their calls. */
  private readonly hosted = new Map<string, string>()

  constructor(reply: ReplyWriter) {
    this.reply = reply
  }

  /** Whether the arguments of a call have not ended. */
  get hasOpenCall(): boolean {
    return [...this.open.values()].some(({ kind }) => kind === "call")
  }

  /** Reads an event of a block. Returns whether it has the shape of one. */
  step(event: string, index: number, json: Json.JsonObject): boolean {
    if (this.ended.has(index)) return false
    if (event === "contentBlockStop") {
      this.close(index)
      return true
    }
    if (event === "contentBlockDelta") {
      const delta = Json.object(json["delta"])
      return delta !== undefined && this.grow(index, delta)
    }
    const start = Json.object(json["start"])
    return start !== undefined && this.begin(index, start)
  }

  /** Ends the open blocks. `isBlocked`: the vendor stopped the model, in the middle of an open call. */
  end(isBlocked: boolean): void {
    for (const [index, block] of this.open) {
      if (block.kind === "call" && isBlocked) block.call.drop()
      else this.close(index)
    }
  }

  private begin(index: number, start: Json.JsonObject): boolean {
    if (this.open.has(index)) return false
    const toolUse = Json.object(start["toolUse"])
    const toolResult = Json.object(start["toolResult"])
    const image = Json.object(start["image"])
    if (toolUse !== undefined) this.open.set(index, this.callOf(toolUse))
    else if (toolResult !== undefined) this.open.set(index, this.resultOf(toolResult))
    else if (image !== undefined) {
      const mediaType = typeOf("image", Json.text(image["format"]) ?? "png")
      this.open.set(index, { kind: "image", mediaType, data: "" })
    }
    // The first piece decides which block any other start begins.
    return true
  }

  private callOf(start: Json.JsonObject): Block {
    const [id, tool] = [Json.text(start["toolUseId"]), Json.text(start["name"])]
    if (start["type"] !== "server_tool_use")
      return { kind: "call", call: this.reply.openCall(id, tool ?? "") }
    this.hosted.set(id ?? "", tool ?? "")
    return { kind: "hosted", hosted: this.reply.hostedTool(id ?? "", tool ?? ""), start, json: "" }
  }

  private resultOf(start: Json.JsonObject): Block {
    const id = Json.text(start["toolUseId"]) ?? ""
    return {
      kind: "result",
      hosted: this.reply.hostedTool(id, this.hosted.get(id) ?? ""),
      start,
      results: []
    }
  }

  private grow(index: number, delta: Json.JsonObject): boolean {
    const { citation, image, reasoningContent, text, toolResult, toolUse } = delta
    if (text !== undefined) return typeof text === "string" && this.write(index, "text", text)
    if (toolUse !== undefined) return this.writeInput(index, Json.object(toolUse)?.["input"])
    if (reasoningContent !== undefined) return this.think(index, Json.object(reasoningContent) ?? {})
    if (citation !== undefined) return this.cite(Json.object(citation))
    const block = this.open.get(index)
    if (toolResult !== undefined) {
      if (block?.kind !== "result") return false
      block.results.push(...(Json.isArray(toolResult) ? toolResult : [toolResult]))
    } else if (image !== undefined) {
      if (block?.kind !== "image") return false
      const { error, source } = Json.object(image) ?? {}
      block.data += Json.text(Json.object(source)?.["bytes"]) ?? ""
      block.error = Json.object(error) ?? block.error
    }
    return true
  }

  private write(index: number, kind: Prose["kind"], text: string): boolean {
    if (text === "") return true
    const prose = this.prose(index, kind)
    prose?.write(text)
    return prose !== undefined
  }

  /** The open block of this kind, `undefined` if a block of another kind has the index. */
  private prose(index: number, kind: Prose["kind"]): Prose | undefined {
    const block = this.open.get(index)
    if (block !== undefined)
      return block.kind === "prose" && block.prose.kind === kind ? block.prose : undefined
    const prose = kind === "text" ? this.reply.openText() : this.reply.openThinking()
    this.open.set(index, { kind: "prose", prose })
    return prose
  }

  private writeInput(index: number, input: Json.Json | undefined): boolean {
    const block = this.open.get(index)
    if (typeof input !== "string") return false
    if (block?.kind === "call") block.call.write(input)
    else if (block?.kind === "hosted") {
      this.reply.weigh(input.length)
      block.json += input
    } else return false
    return true
  }

  private think(index: number, { redactedContent, signature, text }: Json.JsonObject): boolean {
    if (typeof text === "string") return this.write(index, "thinking", text)
    const kept = Json.defined({ redactedContent, signature })
    if (Object.keys(kept).length === 0) return true
    const prose = this.prose(index, "thinking")
    prose?.keep(kept)
    return prose !== undefined
  }

  private cite(citation: Json.JsonObject | undefined): boolean {
    if (citation === undefined) return false
    const { location, source, sourceContent, title } = citation
    const web = Json.object(Json.object(location)?.["web"])
    const at = Json.text(source) ?? ""
    const url = Json.text(web?.["url"]) ?? (/^https?:/.test(at) ? at : undefined)
    const citedText = Json.array(sourceContent)
      .map((part) => Json.text(Json.object(part)?.["text"]) ?? "")
      .join("")
    this.reply.source(
      {
        sourceType: url === undefined ? "document" : "url",
        ...(url === undefined ? (at === "" ? {} : { id: at }) : { url }),
        ...(typeof title === "string" ? { title } : {}),
        ...(citedText === "" ? {} : { citedText })
      },
      { citation }
    )
    return true
  }

  private close(index: number): void {
    const block = this.open.get(index)
    this.open.delete(index)
    this.ended.add(index)
    switch (block?.kind) {
      case "prose":
        return block.prose.end()
      case "hosted":
        return block.hosted.end(
          { params: Json.parseShallow(block.json) ?? block.json },
          { toolUse: block.start }
        )
      case "result":
        return block.hosted.end(
          { result: block.results, ...(block.start["status"] === "error" ? { isError: true } : {}) },
          { toolResult: block.start }
        )
      case "image":
        if (block.error !== undefined)
          this.reply.hostedTool(`image_${index}`, "image").end({ result: block.error, isError: true })
        return block.data === ""
          ? undefined
          : this.reply.media({ source: { data: block.data, mediaType: block.mediaType } })
    }
  }
}
