/**
 * The events of a run as its session keeps them: without the texts that an entry of the session has.
 *
 * The line of an event comes directly before the entry that it leaves the text to, so that a write that a crash cut leaves no entry
 * without its event. The entries of a sub-agent come before the lines of its events.
 */
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../../AgentEvent.ts"
import { isArray, isObject, type JsonObject } from "../../internal/json.ts"
import * as Message from "../../Message.ts"
import type { Record } from "../../Session.ts"
import * as Data from "../../sessions/CustomData.ts"
import * as SessionEntry from "../../sessions/SessionEntry.ts"
import type { Logged } from "../../sessions/SessionStore.ts"
import * as EventText from "../EventText.ts"
import * as LogLine from "./LogLine.ts"

type Calls = ReadonlyMap<string, Schema.Json | undefined>

const callsOf = (message: Message.Message): Calls | undefined =>
  message.role === "assistant"
    ? new Map(Message.toolCalls(message).map(({ id, params }) => [id, params]))
    : undefined

const ofMessage = (id: string): string => `message ${id}`
const ofEnd = ({ runId, toolCallId }: { readonly runId: string; readonly toolCallId: string }): string =>
  `end ${runId} ${toolCallId}`

/** Writes the events of a run. */
export class Packer {
  /** The texts that the session has, or gets with the events, and that no event has left out yet. */
  private readonly entered = new Set<string>()
  /** The calls of the last answers, by their runs. */
  private readonly calls = new Map<string, Calls>()

  /** Notes that the session has records, or gets them in the same write as their events. */
  note(records: ReadonlyArray<Record>): void {
    for (const record of records) {
      if (record._tag !== "Event") continue
      const { event } = record
      if (event._tag === "MessageEnd") this.entered.add(ofMessage(event.message.id))
      if (event._tag === "ToolExecutionEnd") this.entered.add(ofEnd(event))
    }
  }

  /** The JSON of an event, without the texts that the session has. */
  pack(event: AgentEvent): string {
    const packed = this.packed(event)
    return packed === undefined ? EventText.of(event) : JSON.stringify(packed)
  }

  private packed(event: AgentEvent): object | undefined {
    switch (event._tag) {
      case "RunStart": {
        const { prompts, ...others } = event
        const ids = prompts.map(({ id }) => id)
        return ids.every((id) => this.entered.has(ofMessage(id))) ? { ...others, promptIds: ids } : undefined
      }
      case "MessageEnd": {
        const { message, ...others } = event
        const calls = callsOf(message)
        if (calls !== undefined) this.calls.set(event.runId, calls)
        return this.entered.delete(ofMessage(message.id)) ? { ...others, messageId: message.id } : undefined
      }
      case "ToolsDetected": {
        const { toolCalls, ...others } = event
        const ids = toolCalls.map(({ id }) => id)
        return toolCalls.every((call) => this.isCalled(event.runId, call.id, call.params))
          ? { ...others, toolCallIds: ids }
          : undefined
      }
      case "ToolExecutionStart":
      case "ToolInvoked":
      case "ApprovalRequested": {
        const { params, ...others } = event
        return this.isCalled(event.runId, event.toolCallId, params) ? others : undefined
      }
      case "ToolExecutionEnd": {
        const { result: _, ...others } = event
        return this.entered.delete(ofEnd(event)) ? others : undefined
      }
      default:
        return undefined
    }
  }

  private isCalled(runId: string, toolCallId: string, params: Schema.Json | undefined): boolean {
    const calls = this.calls.get(runId)
    if (calls?.has(toolCallId) !== true) return false
    const called = calls.get(toolCallId)
    return called === params || JSON.stringify(called) === JSON.stringify(params)
  }
}

const readTool = Schema.decodeUnknownOption(Data.Tool)
const readChild = Schema.decodeUnknownOption(Data.Child)

/** A text of an entry, and the place of the entry among the lines. */
interface Placed {
  readonly at: number
  readonly value: Schema.Json | Message.Message
}

/** Puts the texts of the entries of a session back into the lines between them. */
class Unpacker {
  private readonly texts = new Map<string, Array<Placed>>()
  /** The last answers, by their runs. */
  private readonly answers = new Map<string, ReadonlyArray<Message.ToolCall>>()

  addEntry(entry: SessionEntry.SessionEntry, at: number): void {
    if (entry.type === "message") return this.add(ofMessage(entry.message.id), { at, value: entry.message })
    if (entry.type !== "custom") return
    if (entry.kind === "tool") {
      const tool = Option.getOrUndefined(readTool(entry.data))
      if (tool?.phase === "end") this.add(ofEnd(tool), { at, value: tool.output })
    }
    const child = entry.kind === "child" ? Option.getOrUndefined(readChild(entry.data)) : undefined
    const inner = child === undefined ? undefined : SessionEntry.fromJson(child.entry)
    if (inner !== undefined && Result.isSuccess(inner)) this.addEntry(inner.success, at)
  }

  private add(key: string, placed: Placed): void {
    this.texts.set(key, [...(this.texts.get(key) ?? []), placed])
  }

  /**
   * The text of the entry directly behind a line, or for the run of a sub-agent of the last one before it. An entry that comes later is
   * one of a process that continued the run after a crash had cut this one.
   */
  private find(key: string, at: number, isInside: boolean): Placed["value"] | undefined {
    const all = this.texts.get(key) ?? []
    return (isInside ? all.findLast((placed) => placed.at < at) : all.find((placed) => placed.at === at + 1))
      ?.value
  }

  /** The event of a line; `undefined` for one whose entry a crash cut. */
  event(event: JsonObject, at: number): object | undefined {
    const runId = String(event["runId"])
    const isInside = event["path"] !== undefined
    const message = (id: unknown) => this.find(ofMessage(String(id)), at, isInside)
    const calls = this.answers.get(runId) ?? []
    switch (event["_tag"]) {
      case "RunStart": {
        const { promptIds, ...others } = event
        if (!isArray(promptIds)) return event
        const prompts = promptIds.flatMap((id) => this.texts.get(ofMessage(String(id)))?.[0]?.value ?? [])
        return prompts.length === promptIds.length ? { ...others, prompts } : undefined
      }
      case "MessageEnd": {
        const { messageId, ...others } = event
        const ended = others["message"] ?? message(messageId)
        if (isMessage(ended) && ended.role === "assistant") this.answers.set(runId, Message.toolCalls(ended))
        return ended === undefined ? undefined : { ...others, message: ended }
      }
      case "ToolsDetected": {
        const { toolCallIds, ...others } = event
        return isArray(toolCallIds)
          ? { ...others, toolCalls: calls.filter(({ id }) => toolCallIds.includes(id)) }
          : event
      }
      case "ToolExecutionStart":
      case "ToolInvoked":
      case "ApprovalRequested": {
        if (event["params"] !== undefined) return event
        return { ...event, params: calls.find(({ id }) => id === event["toolCallId"])?.params }
      }
      case "ToolExecutionEnd": {
        if (event["result"] !== undefined) return event
        const result = this.find(ofEnd({ runId, toolCallId: String(event["toolCallId"]) }), at, isInside)
        return result === undefined ? undefined : { ...event, result }
      }
      default:
        return event
    }
  }
}

const isMessage = Schema.is(Message.Message)

/** The lines of a log, with the events as the run published them. */
export const unpacked = (
  items: ReadonlyArray<Logged | SessionEntry.SessionEntry>
): ReadonlyArray<unknown> => {
  const unpacker = new Unpacker()
  items.forEach((item, at) => ("_tag" in item ? undefined : unpacker.addEntry(item, at)))
  return items.flatMap((item, at): ReadonlyArray<unknown> => {
    const line = "_tag" in item ? LogLine.parse(item.text) : undefined
    if (!isObject(line) || !isObject(line["event"])) return line === undefined ? [] : [line]
    const event = unpacker.event(line["event"], at)
    return event === undefined ? [] : [{ ...line, event }]
  })
}
