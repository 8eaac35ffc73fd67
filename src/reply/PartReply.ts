/**
 * Writes the model events of an answer whose parts name their blocks by ids, as those of `effect/ai` and of the AI SDK do.
 */
import type { HostedTool } from "../Message.ts"
import * as PartMetadata from "./PartMetadata.ts"
import { type CallBlock, type HostedBlock, type Prose, ReplyWriter } from "./ReplyWriter.ts"

type Metadata = PartMetadata.Metadata

/** A start, a piece or an end of a text or of thinking; `type` ends in `-end` for an end. */
interface ProsePart {
  readonly type: string
  readonly id: string
  readonly delta?: string
}

/** A block that has not ended, with the metadata of its parts so far. */
interface Open<Block> {
  readonly block: Block
  metadata: Metadata
}

export class PartReply extends ReplyWriter {
  private readonly proses = new Map<string, Open<Prose>>()
  private readonly openCalls = new Map<string, Open<CallBlock>>()
  private readonly hosted = new Map<string, HostedBlock>()

  /** Adds a part of a text or of thinking, which opens its block where none has its id. */
  addProse(kind: Prose["kind"], part: ProsePart, metadata: Metadata): void {
    const key = `${kind} ${part.id}`
    const open = this.proses.get(key) ?? {
      block: kind === "text" ? this.openText() : this.openThinking(),
      metadata: PartMetadata.none
    }
    this.proses.set(key, open)
    open.metadata = PartMetadata.merge(open.metadata, metadata)
    open.block.write(part.delta ?? "")
    if (part.type.endsWith("-end")) this.endOpenProse(key, open)
  }

  private endOpenProse(key: string, { block, metadata }: Open<Prose>): void {
    this.proses.delete(key)
    // Thinking is marked as this provider's even without metadata, so that it goes back to it.
    const isMarked = block.kind === "thinking" && block.length > 0
    if (isMarked || !PartMetadata.isNone(metadata)) block.keep({ metadata })
    block.end()
  }

  /** Opens a call, unless one with its id is open. */
  beginCall(id: string, name: string, metadata: Metadata = PartMetadata.none): Open<CallBlock> {
    const open = this.openCalls.get(id) ?? { block: this.openCall(id, name), metadata }
    this.openCalls.set(id, open)
    return open
  }

  /** Appends a piece of the arguments of an open call. */
  growCall(id: string, delta: string): void {
    const { block } = this.openCalls.get(id) ?? {}
    if (block?.isText === false) block.write(delta)
  }

  /** Ends a call, which opens here if it has not. `written` returns its arguments from the pieces that came. */
  endCall(id: string, name: string, metadata: Metadata, written: (pieces: string) => string): void {
    const open = this.beginCall(id, name)
    const { block } = open
    const json = written(block.json)
    if (block.json === "") this.growCall(id, json)
    open.metadata = PartMetadata.merge(open.metadata, metadata)
    this.endOpenCall(id, open, json)
  }

  private endOpenCall(id: string, { block, metadata }: Open<CallBlock>, json: string): void {
    this.openCalls.delete(id)
    if (!PartMetadata.isNone(metadata)) block.keep({ metadata })
    block.end(json)
  }

  /** Begins a call of a tool that the vendor runs, unless one with its id has begun. */
  beginHosted(id: string, name: string): HostedBlock {
    const block = this.hosted.get(id) ?? this.hostedTool(id, name)
    this.hosted.set(id, block)
    return block
  }

  /** Adds a call of such a tool, or its result. It is marked as this provider's even without metadata, so that it goes back to it alone. */
  addHosted(
    id: string,
    name: string,
    run: Pick<HostedTool, "params" | "result" | "isError">,
    metadata: Metadata
  ): void {
    const block = "result" in run ? this.hostedTool(id, name) : this.beginHosted(id, name)
    this.hosted.delete(id)
    block.end(run, { metadata })
  }

  override finish(finish: Parameters<ReplyWriter["finish"]>[0]): void {
    for (const [key, open] of this.proses) this.endOpenProse(key, open)
    for (const [id, open] of this.openCalls) this.endOpenCall(id, open, open.block.json)
    for (const block of this.hosted.values()) block.end({})
    super.finish(finish)
  }
}
