/** The state of an AG-UI stream between two events. */
import * as Schema from "effect/Schema"
import { AgentEvent } from "../../AgentEvent.ts"
import * as Asking from "../../ui/Asking.ts"
import { CallSet } from "../../internal/callSet.ts"
import * as Streamed from "../../ui/Streamed.ts"
import type { AgUiMessage, Event, JsonObject, Tag } from "./AgUiEvent.ts"

/**
 * The ids of a run in AG-UI, and the conversation that the client has.
 *
 * @since 0.2.0
 * @category models
 */
export interface Input {
  /** The id of the conversation. */
  readonly threadId: string
  /** The id that the client gave the run. */
  readonly runId: string
  /** The conversation of the client. Default: empty. */
  readonly messages?: ReadonlyArray<AgUiMessage>
}

/**
 * A run that has begun and not ended: the agent, or a sub-agent.
 *
 * @since 0.2.0
 * @category models
 */
export interface Producer {
  /** The member that events of a sub-agent have. */
  readonly tag: Tag
  /** The name of the step that has begun, `undefined` between steps. */
  readonly step: string | undefined
  /** The id of the answer that streams. */
  readonly answerId: string
  /** The part of the answer that the client has. */
  readonly streamed: Streamed.Streamed
  /** The ids of the calls in AG-UI where they differ. */
  readonly callIds: ReadonlyMap<string, string>
  /** The events that begin it again in the next response. */
  readonly begin: ReadonlyArray<Event>
}

/**
 * The state between two events.
 *
 * @since 0.2.0
 * @category models
 */
export interface State {
  /** The ids of the run of AG-UI, and the conversation before it. */
  readonly input: Input
  /** The id of the run, `undefined` before its start. */
  readonly runId: string | undefined
  /** The conversation as the client has it, without the answers that stream. */
  readonly messages: ReadonlyArray<AgUiMessage>
  /** The runs that have not ended, the outermost first. */
  readonly producers: ReadonlyMap<string, Producer>
  /** The ids of all tool calls. */
  readonly calls: ReadonlySet<string>
  /** The names of the tools that run, by run and call. */
  readonly toolNames: ReadonlyMap<string, string>
  /** The open requests to a person. */
  readonly asking: Asking.Asking
  /** The output of the run. Default none. */
  readonly output: Schema.Json | undefined
  /** Whether the run has ended. */
  readonly hasEnded: boolean
}

/** A state, and the events of AG-UI for the last event. */
export type Step = readonly [State, ReadonlyArray<Event>]

export const initial = (input: Input): State => ({
  input,
  runId: undefined,
  messages: (input.messages ?? []).filter(({ role }) => role !== "activity"),
  producers: new Map(),
  calls: callsIn(input.messages ?? []),
  toolNames: new Map(),
  asking: Asking.nothing,
  output: undefined,
  hasEnded: false
})

/** The ids of the calls of messages. */
export const callsIn = (messages: ReadonlyArray<AgUiMessage>): ReadonlySet<string> =>
  messages.flatMap(callsOf).reduce((all, id) => all.with(id), CallSet.empty)

const callsOf = ({ toolCalls }: AgUiMessage): ReadonlyArray<string> =>
  Array.isArray(toolCalls)
    ? toolCalls.flatMap((call: Schema.Json) =>
        typeof call === "object" && call !== null && "id" in call && typeof call.id === "string"
          ? [call.id]
          : []
      )
    : []

/** A run of which the state knows nothing yet, as one that begins. */
export const producerOf = (state: State, runId: string): Producer =>
  state.producers.get(runId) ?? {
    tag: runId === state.runId ? {} : { subagentRunId: runId },
    step: undefined,
    answerId: "",
    streamed: Streamed.nothing,
    callIds: new Map(),
    begin: []
  }

export const withProducer = (state: State, runId: string, change: Partial<Producer>): State => ({
  ...state,
  producers: new Map(state.producers).set(runId, { ...producerOf(state, runId), ...change })
})

/** The id of a call in AG-UI, where calls of all agents share one space of ids. */
export const callIdOf = (
  state: State,
  { runId, toolCallId }: { readonly runId: string; readonly toolCallId: string }
): string =>
  state.producers.get(runId)?.callIds.get(toolCallId) ??
  (runId === state.runId ? toolCallId : `${runId}:${toolCallId}`)

/** An event of the run as JSON. */
export const json: (event: AgentEvent) => Schema.Json = Schema.encodeSync(Schema.toCodecJson(AgentEvent))

/** A message of the run beside a message of AG-UI. */
export const wholeOf = (message: object): { readonly metadata: JsonObject } => ({
  metadata: { effectAgent: { ...message } }
})
