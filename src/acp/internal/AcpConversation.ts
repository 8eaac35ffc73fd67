/**
 * A session that a client has open, and the prompts that have no answer yet.
 */
import type { AgentContext, ClientCapabilities, SessionUpdate } from "@agentclientprotocol/sdk"
import { methods } from "@agentclientprotocol/sdk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { Service as Runs } from "../../runs/Runs.ts"
import * as AcpContent from "./AcpContent.ts"
import { initial, type State } from "./UpdateState.ts"
import type { View } from "./ToolView.ts"

/**
 * The calls that the answer "always" permits.
 *
 * **Details**
 *
 * It permits those with an equal `key`, and `words` names them in the request.
 *
 * @category options
 * @since 0.2.0
 */
export type ToolScope = (
  toolName: string,
  params: Schema.Json
) => { readonly key: string; readonly words: string }

/** The client, and what its sessions need. */
export interface Peer {
  readonly runs: Runs
  /** The capabilities, which the client says first. */
  readonly capabilities: ClientCapabilities
  readonly scopeOf: ToolScope
  readonly view: ((toolName: string, params: unknown, cwd: string | undefined) => View) | undefined
}

/** A prompt without its answer. */
export class Turn {
  /** Done when the client cancels. */
  readonly cancelled = Deferred.makeUnsafe<void>()
  /** The run, once it has an id. */
  runId: string | undefined
}

export class Conversation {
  readonly sessionId: string
  readonly turns = new Set<Turn>()
  state: State
  private readonly peer: Peer
  private readonly rules = new Map<string, Deferred.Deferred<void>>()

  constructor(sessionId: string, cwd: string, peer: Peer) {
    const { capabilities, view } = peer
    this.sessionId = sessionId
    this.peer = peer
    this.state = initial({
      cwd,
      notices: isGiven(capabilities.session?.notices),
      compaction: isGiven(capabilities.session?.compaction),
      ...(view === undefined ? {} : { view })
    })
  }

  /** The rule that allows the calls of a scope. It is done once the person has said so. */
  rule(key: string): Deferred.Deferred<void> {
    const rule = this.rules.get(key) ?? Deferred.makeUnsafe<void>()
    this.rules.set(key, rule)
    return rule
  }

  /** Sends updates, in their order. Those to a client that has left are lost. */
  tell(client: AgentContext, updates: ReadonlyArray<SessionUpdate>): Effect.Effect<void> {
    const { sessionId } = this
    return Effect.forEach(
      AcpContent.joined(updates),
      (update) =>
        Effect.ignore(
          Effect.tryPromise(() => client.notify(methods.client.session.update, { sessionId, update }))
        ),
      { discard: true }
    )
  }

  /** Cancels the runs of all prompts. */
  readonly cancel: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(
      this.turns,
      ({ cancelled, runId }) =>
        Effect.andThen(
          Deferred.succeed(cancelled, undefined),
          runId === undefined
            ? Effect.void
            : Effect.ignore(this.peer.runs.cancel(runId, "the editor cancelled the prompt"))
        ),
      { discard: true }
    )
  )
}

const isGiven = (capability: unknown): boolean => capability !== undefined && capability !== null
